// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { follow } from './follow.ts';
import { COLUMNS, emptyHistory } from './load.ts';
import type { History } from './load.ts';

const settle = async () => {
  for (let i = 0; i < 20; ++i) await new Promise((done) => setImmediate(done));
};

/** Follows a server whose stream the test writes; returns what the page shows. */
function begin(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  Object.assign(globalThis, { sessionStorage: { getItem: () => null } });
  const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  globalThis.fetch = async (path, options) => {
    if (String(path) === '/ui/api/history') return new Response(JSON.stringify(emptyHistory()));
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void streams.push(controller) });
    const own = streams.at(-1);
    options?.signal?.addEventListener('abort', () => own?.error(options.signal?.reason));
    return new Response(body);
  };
  let history: History = emptyHistory();
  const links: string[] = [];
  const over = new AbortController();
  void follow(over.signal, { change: (update) => (history = update(history)), tell: (link, error) => links.push(error ? `${link}: ${error}` : link) });
  const sample = { ...Object.fromEntries(COLUMNS.map((name) => [name, 1])), gpus: [] };
  const say = async (time_s: number) => {
    streams.at(-1)?.enqueue(new TextEncoder().encode(`data: ${JSON.stringify({ ...sample, time_s })}\n\n`));
    await settle();
  };
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    await settle();
  };
  return { streams, links, times: () => history.time_s, end: () => over.abort(), say, pass };
}

test('a stream in which nothing comes any more is lost, and begun again', async (t) => {
  const { streams, links, times, end, say, pass } = begin(t);
  await settle();
  assert.deepEqual(links, ['live']);
  for (let second = 1; second <= 30; ++second) {
    await say(second);
    await pass(1000);
  }
  assert.equal(times().length, 30);
  assert.deepEqual(links, ['live']);
  await pass(13_000);
  assert.deepEqual(links, ['live']);
  await pass(1000);
  assert.deepEqual(links, ['live', 'lost: nothing has come from the server for 15 s']);
  await pass(500);
  assert.equal(streams.length, 2);
  assert.equal(links.at(-1), 'live');
  end();
});

test('who does not look any more is told nothing', async (t) => {
  const { links, end, pass } = begin(t);
  await settle();
  end();
  await settle();
  await pass(60_000);
  assert.deepEqual(links, ['live']);
});
