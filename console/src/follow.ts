// SPDX-License-Identifier: Apache-2.0
// The load of the server as it comes, for as long as somebody looks.
import { Refusal, ask, send, textOf, textOfError } from './api.ts';
import { readEvents } from './events.ts';
import { inOrder, withSample } from './load.ts';
import type { History, Sample } from './load.ts';

export type Link = 'opening' | 'live' | 'lost';
export interface Follower {
  change: (update: (old: History) => History) => void;
  tell: (link: Link, error: string) => void;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** The server sends a sample each second. A machine that is gone closes no connection. */
const LONGEST_SILENCE_MS = 15_000;

/** Follows until the stream ends; throws why it could not, also if nothing comes any more. */
async function followOnce(signal: AbortSignal, { change, tell }: Follower): Promise<void> {
  const connection = new AbortController();
  const stop = () => connection.abort();
  let isSilent = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hear = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      isSilent = true;
      stop();
    }, LONGEST_SILENCE_MS);
  };
  signal.addEventListener('abort', stop);
  hear();
  try {
    const reply = await send('/ui/api/live', { signal: connection.signal });
    if (!reply.ok) throw new Refusal(reply.status, textOfError(await reply.text(), reply.status));
    // What the stream sends from now on follows the history without a gap.
    const history = await ask<History>('/ui/api/history', { signal: connection.signal });
    if (signal.aborted) return;
    change(() => inOrder(history));
    tell('live', '');
    hear();
    await readEvents(reply, (data) => {
      hear();
      change((old) => withSample(old, JSON.parse(data) as Sample));
    });
  } catch (error) {
    if (isSilent) throw new Refusal(0, `nothing has come from the server for ${LONGEST_SILENCE_MS / 1000} s`);
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    // What is still open if the history could not be read.
    stop();
  }
}

/** Follows the load until the signal; every loss of the connection is followed by another attempt. */
export async function follow(signal: AbortSignal, follower: Follower): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  const tell = (link: Link, error: string) => {
    if (link === 'live') pause = FIRST_PAUSE_MS;
    follower.tell(link, error);
  };
  while (!signal.aborted) {
    try {
      await followOnce(signal, { ...follower, tell });
      if (!signal.aborted) tell('lost', 'the connection has ended');
    } catch (error) {
      if (signal.aborted) return;
      tell('lost', textOf(error));
      // Only another key helps, and then this starts again.
      if (error instanceof Refusal && (error.status === 401 || error.status === 403)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}
