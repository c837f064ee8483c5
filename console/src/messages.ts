// SPDX-License-Identifier: Apache-2.0
// Messages of the log: which of them somebody wants to see.

export type Level = 'error' | 'warning' | 'info' | 'verbose';
export interface Message {
  /** Counts up from 1 when the server starts. */
  id: number;
  time_ms: number;
  level: Level;
  source: string;
  text: string;
}
export interface Wanted {
  text: string;
  /** This level and those that matter more. */
  level: Level;
  /** Empty: all models. */
  model: string;
}

/** As many as the server keeps. */
export const MOST_KEPT = 1000;
export const LEVELS: [Level, string][] = [
  ['verbose', 'All'],
  ['info', 'Information and above'],
  ['warning', 'Warnings and errors'],
  ['error', 'Errors'],
];
const RANK: Record<Level, number> = { error: 0, warning: 1, info: 2, verbose: 3 };

/** What names of models are made of. A dot is one of them within a name ("llama-3.1"), and none at the end of a sentence. */
const PART = '[\\p{L}\\p{M}\\p{N}_-]';

/** Whether a text names a model, and not one whose name is longer. */
export function names(text: string, model: string): boolean {
  if (!text.includes(model)) return false;
  const literal = model.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  return new RegExp(`(?<!${PART}|${PART}\\.)${literal}(?!${PART}|\\.${PART})`, 'u').test(text);
}

export function matches(message: Message, wanted: Wanted): boolean {
  if (RANK[message.level] > RANK[wanted.level]) return false;
  if (wanted.model && !names(message.text, wanted.model)) return false;
  return `${message.text} ${message.source}`.toLowerCase().includes(wanted.text.trim().toLowerCase());
}

/** Old and new messages together, as far as they are kept. A server that was started again counts anew. */
export function addMessages(old: Message[], fresh: Message[]): Message[] {
  const first = fresh[0]?.id ?? Infinity;
  const isNewServer = first <= (old.at(-1)?.id ?? 0);
  return [...(isNewServer ? [] : old), ...fresh].slice(-MOST_KEPT);
}
