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

/** Whether a text names a model, and not one whose name is longer. */
export function names(text: string, model: string): boolean {
  const isPart = (character: string | undefined) => character !== undefined && /[\w-]/.test(character);
  for (let at = text.indexOf(model); at >= 0; at = text.indexOf(model, at + 1)) {
    if (!isPart(text[at - 1]) && !isPart(text[at + model.length])) return true;
  }
  return false;
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
