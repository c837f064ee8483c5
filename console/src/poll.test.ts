// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { Refusal, textOf } from './api.ts';
import { longestRun, poll } from './poll.ts';

/** A server whose answers the test gives, and what the page has seen of them. */
function begin(t: TestContext, everyMs: number, isSeen = () => true) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const runs: { answer: (value: string) => void; refuse: (error: unknown) => void; signal: AbortSignal }[] = [];
  const seen: string[] = [];
  const stop = poll<string>({
    load: (signal) => new Promise((answer, refuse) => runs.push({ answer, refuse, signal })),
    everyMs,
    isSeen,
    take: (value) => seen.push(value),
    fail: (error) => seen.push(`error: ${textOf(error)}`),
  });
  // What follows a promise comes in turns of its own.
  const settle = () => new Promise((done) => setImmediate(done));
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    await settle();
  };
  return { runs, seen, stop, pass, settle };
}

test('an answer that takes longer than the pause arrives, and the next question waits for it', async (t) => {
  const { runs, seen, pass, settle } = begin(t, 5000);
  await pass(12_000);
  assert.equal(runs.length, 1);
  assert.ok(!runs[0]?.signal.aborted);
  runs[0]?.answer('slow');
  await settle();
  assert.deepEqual(seen, ['slow']);
  await pass(4999);
  assert.equal(runs.length, 1);
  await pass(1);
  assert.equal(runs.length, 2);
});

test('a server that does not answer is told of, and asked again', async (t) => {
  const { runs, seen, pass, settle } = begin(t, 5000);
  await pass(longestRun(5000));
  assert.deepEqual(seen, ['error: the server does not answer: nothing came within 20 s']);
  assert.ok(runs[0]?.signal.aborted);
  // An answer that comes after all is older than what was said.
  runs[0]?.answer('late');
  await settle();
  assert.equal(seen.length, 1);
  await pass(5000);
  runs[1]?.answer('back');
  await settle();
  assert.equal(seen.at(-1), 'back');
});

test('what is read once may take as long as it takes: a model may have to be loaded for it', async (t) => {
  const { runs, seen, pass, settle } = begin(t, 0);
  await pass(600_000);
  runs[0]?.answer('loaded');
  await settle();
  await pass(600_000);
  assert.deepEqual([seen, runs.length], [['loaded'], 1]);
  assert.equal(longestRun(15_000), 60_000);
});

test('after an error there is another attempt, but none with a key that was refused', async (t) => {
  const { runs, seen, pass, settle } = begin(t, 5000);
  runs[0]?.refuse(new Refusal(503, 'crowded'));
  await settle();
  await pass(5000);
  runs[1]?.refuse(new Refusal(401, 'no key'));
  await settle();
  await pass(60_000);
  assert.deepEqual([seen, runs.length], [['error: crowded', 'error: no key'], 2]);
});

test('nothing is asked while nobody looks, and nothing is told after the end', async (t) => {
  let isSeen = false;
  const { runs, seen, stop, pass, settle } = begin(t, 5000, () => isSeen);
  runs[0]?.answer('first');
  await settle();
  await pass(20_000);
  assert.equal(runs.length, 1);
  isSeen = true;
  await pass(5000);
  assert.equal(runs.length, 2);
  stop();
  assert.ok(runs[1]?.signal.aborted);
  runs[1]?.answer('for nobody');
  await settle();
  await pass(60_000);
  assert.deepEqual([seen, runs.length], [['first'], 2]);
});
