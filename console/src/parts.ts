// SPDX-License-Identifier: Apache-2.0
// What the time of a model's requests is spent on, from its statistics.
import type { ModelStat } from './api.ts';

export interface Part {
  key: string;
  words: string;
  /** The mean of a request. */
  ms: number;
}

const PARTS: [string, string][] = [
  ['queue', 'waiting for an instance'],
  ['compute_input', 'making inputs ready'],
  ['compute_infer', 'running the model'],
  ['compute_output', 'collecting outputs'],
];

/** The parts of the mean request of all versions, and its whole; null if there was none. */
export function partsOf(stats: ModelStat[]): { parts: Part[]; total: number } | null {
  const sum = (key: string) => stats.reduce((ns, stat) => ns + (stat.inference_stats[key]?.ns ?? 0), 0) / 1e6;
  const count = stats.reduce((all, stat) => all + (stat.inference_stats.success?.count ?? 0), 0);
  if (count === 0) return null;
  const total = sum('success') / count;
  const parts = PARTS.map(([key, words]) => ({ key, words, ms: sum(key) / count }));
  const rest = total - parts.reduce((ms, part) => ms + part.ms, 0);
  if (rest > total * 0.01) parts.push({ key: 'rest', words: 'everything else in the server', ms: rest });
  return { parts: parts.filter((part) => part.ms > 0), total };
}

/** What the largest part means for whoever wants the model to be faster. */
export const ADVICE: Record<string, string> = {
  queue: 'Requests wait for an instance that is free. More instances help if there are processors left, larger batches if the model is faster with them; otherwise the model gets more requests than this machine can serve.',
  compute_input: 'Inputs are put together and copied for the model. Smaller inputs, or shared memory, help.',
  compute_infer: 'The model itself takes the time. A faster processor, a smaller model, or other options of its backend help.',
  compute_output: 'Outputs are copied from the model. Smaller outputs, or asking for fewer of them, help.',
  rest: 'The time goes to neither waiting nor executing, for example to the steps of an ensemble or to the cache.',
  ensemble: 'An ensemble spends its time in its steps. Look at each of them.',
};
