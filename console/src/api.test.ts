// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BY_USER, Refusal, ask, onKey, readHealth, textOfError, writeKey } from './api.ts';
import type { KeyEvent } from './api.ts';

test('the text of an error is the server’s own', () => {
  assert.equal(textOfError('{"error":"no such model"}', 400), 'no such model');
  assert.equal(textOfError('plain', 500), 'plain');
  assert.equal(textOfError('', 502), 'the server answered with status 502');
  assert.equal(textOfError('data: {"error":"it broke"}\n\n', 500), 'it broke');
  assert.equal(textOfError('data: {"error":"it broke"}\n\ndata: {"OUT":1}\n\n', 500), 'it broke');
});

test('health is read from what is about health, whatever the status', () => {
  assert.deepEqual(readHealth('ready', 400, '{"ready":false,"checks":[]}'), { ready: false, checks: [] });
  assert.deepEqual(readHealth('live', 200, '{"live":true}'), { live: true });
  for (const [status, body, text] of [
    [401, '{"error":"no key"}', 'no key'],
    [429, '{"error":"too many wrong ones"}', 'too many wrong ones'],
    [503, '{"error":"too many connections"}', 'too many connections'],
    [200, '{"ready":true}', '{"ready":true}'],
    [200, 'null', 'null'],
    [502, 'Bad Gateway', 'Bad Gateway'],
  ] as const) {
    assert.throws(() => readHealth('live', status, body), (error: unknown) => error instanceof Refusal && error.status === status && error.message === text);
  }
});

/** A server that knows one key, and the keys with which it was asked. */
function serve(right: string) {
  const server = { right, keys: [] as string[] };
  const stored = new Map<string, string>();
  const storage = { getItem: (name: string) => stored.get(name) ?? null, setItem: (name: string, value: string) => void stored.set(name, value), removeItem: (name: string) => void stored.delete(name) };
  Object.assign(globalThis, { sessionStorage: storage });
  globalThis.fetch = async (_path, options) => {
    const key = new Headers(options?.headers).get('Authorization')?.replace('Bearer ', '') ?? '';
    server.keys.push(key);
    return key === server.right ? new Response('{"is": "fine"}') : new Response('{"error": "who are you?"}', { status: 401 });
  };
  return server;
}

test('a key that was refused is not sent again, unless the user wants it', async () => {
  const { keys } = serve('right');
  const events: KeyEvent[] = [];
  const stop = onKey((event) => events.push(event));
  writeKey('wrong');
  await assert.rejects(ask('/v2'), /who are you/);
  for (let i = 0; i < 50; ++i) await assert.rejects(ask('/v2'), /has refused this key/);
  assert.deepEqual(keys, ['wrong']);
  assert.ok(events.slice(1).every((event) => event.isWanted && !event.byUser));
  await assert.rejects(ask('/v2', BY_USER), /who are you/);
  assert.deepEqual(events.at(-1), { isWanted: true, byUser: true });
  writeKey('right');
  assert.deepEqual(await ask('/v2'), { is: 'fine' });
  assert.deepEqual(keys, ['wrong', 'wrong', 'right']);
  stop();
});

test('a key that the server accepts after all is one as any other', async () => {
  const server = serve('other');
  writeKey('mine');
  await assert.rejects(ask('/v2'), /who are you/);
  server.right = 'mine';
  const events: KeyEvent[] = [];
  const stop = onKey((event) => events.push(event));
  assert.deepEqual(await ask('/v2', BY_USER), { is: 'fine' });
  assert.deepEqual(events, [{ isWanted: false }]);
  assert.deepEqual(await ask('/v2'), { is: 'fine' });
  stop();
});

test('an answer to the key of before asks for no other one', async () => {
  serve('right');
  writeKey('wrong');
  const asked = ask('/v2');
  writeKey('right');
  const events: KeyEvent[] = [];
  const stop = onKey((event) => events.push(event));
  await assert.rejects(asked, /who are you/);
  assert.deepEqual(events, []);
  assert.deepEqual(await ask('/v2'), { is: 'fine' });
  stop();
});
