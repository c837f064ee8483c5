// SPDX-License-Identifier: Apache-2.0
// Reading something again and again: one request at a time, and none that waits for a server that hangs.
import { Refusal } from './api.ts';

export interface Polling<T> {
  load: (signal: AbortSignal) => Promise<T>;
  /** From the end of a run to the next one; 0: there is one run only, and it may take as long as it wants. */
  everyMs: number;
  /** Whether somebody looks. */
  isSeen: () => boolean;
  take: (value: T) => void;
  fail: (error: unknown) => void;
}

/** How long a run may take. What is read seldom is slow to read: the index, for example, where the repositories are far away. */
export function longestRun(everyMs: number): number {
  return Math.max(20_000, 4 * everyMs);
}

/** Reads at once, and then from time to time. Returns what ends it; nothing is called after that. */
export function poll<T>({ load, everyMs, isSeen, take, fail }: Polling<T>): () => void {
  let isOver = false;
  let control = new AbortController();
  let next: ReturnType<typeof setTimeout> | undefined;
  let limit: ReturnType<typeof setTimeout> | undefined;

  const read = () => {
    control = new AbortController();
    const own = control;
    const loaded = load(own.signal);
    if (!everyMs) return loaded;
    // Whatever reads the answer may notice late, or not at all, that the request was aborted.
    const late = new Promise<never>((_, reject) => {
      limit = setTimeout(() => {
        reject(new Refusal(0, `the server does not answer: nothing came within ${longestRun(everyMs) / 1000} s`));
        own.abort();
      }, longestRun(everyMs));
    });
    return Promise.race([loaded, late]);
  };

  const run = async () => {
    try {
      const value = await read();
      if (isOver) return;
      take(value);
    } catch (error) {
      if (isOver) return;
      fail(error);
      // Only another key helps, and with that somebody begins again.
      if (error instanceof Refusal && error.status === 401) return;
    } finally {
      clearTimeout(limit);
    }
    // Not before this run is over: an interval would abort each run that takes longer than it.
    if (everyMs) wait();
  };
  const wait = () => {
    next = setTimeout(() => (isSeen() ? void run() : wait()), everyMs);
  };

  void run();
  return () => {
    isOver = true;
    clearTimeout(next);
    clearTimeout(limit);
    control.abort();
  };
}
