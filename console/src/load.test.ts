// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventReader } from './events.ts';
import { layOut } from './graph.ts';
import { COLUMNS, emptyHistory, inOrder, quantile, startOf, toRows, withSample } from './load.ts';
import type { Sample } from './load.ts';

const sample = (time_s: number, requests: number): Sample =>
  ({ ...Object.fromEntries(COLUMNS.map((name) => [name, null])), time_s, requests, gpus: [] }) as unknown as Sample;

test('samples are added once, in order, and an hour of them is kept', () => {
  let history = emptyHistory();
  for (let i = 1; i <= 3700; ++i) history = withSample(history, sample(i, i));
  assert.equal(history.time_s.length, 3600);
  assert.equal(history.time_s[0], 101);
  assert.equal(history.requests.at(-1), 3700);
  assert.equal(withSample(history, sample(3700, 1)), history);
  assert.equal(history.time_s[startOf(history, 300)], 3401);
  assert.equal(startOf(history, 10_000), 0);
  assert.equal(startOf(emptyHistory(), 300), 0);
});

test('after the clock of the server was set back, the history begins anew', () => {
  const gpus = [{ use: 0.5, mib: 10 }];
  let history = { ...emptyHistory(), machine: { ...emptyHistory().machine, cpus: 4 }, gpus: [{ use: [], mib: [] }] };
  for (let i = 100; i <= 110; ++i) history = withSample(history, { ...sample(i, i), gpus });
  // The same second again, or one that is a little late, is none that changes anything.
  assert.equal(withSample(history, { ...sample(105, 1), gpus }), history);
  history = withSample(history, { ...sample(50, 7), gpus });
  assert.deepEqual([history.time_s, history.requests, history.p50_ms, history.gpus], [[50], [7], [null], [{ use: [0.5], mib: [10] }]]);
  assert.equal(history.machine.cpus, 4);
  assert.deepEqual(withSample(history, { ...sample(51, 8), gpus }).time_s, [50, 51]);
});

test('a history in which the clock of the server was set back begins after that', () => {
  const times = [100, 101, 102, 50, 51, 49, 51, 52];
  const column = times.map((_, i) => i);
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, column]));
  const history = { ...emptyHistory(), ...columns, time_s: times, gpus: [{ use: column, mib: column }] };
  const { time_s, requests, gpus } = inOrder(history);
  assert.deepEqual([time_s, requests, gpus], [[50, 51, 52], [3, 4, 7], [{ use: [3, 4, 7], mib: [3, 4, 7] }]]);
  const fine = { ...emptyHistory(), time_s: [1, 2, 3] };
  assert.equal(inOrder(fine), fine);
});

test('a table has means of what is known', () => {
  const rows = toRows([1, 2, 3, 4], [[1, 3, null, 5]], 2);
  assert.deepEqual(rows, [
    { time_s: 4, values: [5] },
    { time_s: 2, values: [2] },
  ]);
  assert.deepEqual(toRows([1], [[null]]), [{ time_s: 1, values: [null] }]);
});

test('quantiles lie in their bucket', () => {
  assert.equal(quantile([1, 2, 4], [0, 10, 0, 0], 0.5), 1.5);
  assert.equal(quantile([1, 2, 4], [0, 0, 0, 3], 0.5), 4);
  assert.equal(quantile([1, 2, 4], [0, 0, 0, 0], 0.5), null);
});

test('events are whole whatever pieces they come in', () => {
  const text = ': open\n\ndata: {"a":1}\n\ndata: two\r\n\r\n';
  for (let size = 1; size < text.length; ++size) {
    const reader = new EventReader();
    const events: string[] = [];
    for (let at = 0; at < text.length; at += size) events.push(...reader.push(text.slice(at, at + size)));
    assert.deepEqual(events, ['{"a":1}', 'two'], `pieces of ${size}`);
  }
});

test('steps of an ensemble stand behind those that they wait for', () => {
  const graph = layOut(
    ['IN'],
    ['OUT'],
    [
      { model_name: 'second', input_map: { x: 'middle', y: 'IN' }, output_map: { z: 'OUT' } },
      { model_name: 'first', input_map: { a: 'IN' }, output_map: { b: 'middle' } },
    ],
  );
  const column = (label: string) => graph.nodes.find((node) => node.label === label)?.column;
  assert.deepEqual([column('IN'), column('first'), column('second'), column('OUT')], [0, 1, 2, 3]);
  assert.equal(graph.edges.length, 4);
  // A cycle, which the server refuses, is drawn in some way, and in finite time.
  assert.ok(layOut([], [], [{ model_name: 'a', input_map: { x: 't' }, output_map: { y: 't' } }]).columns > 0);
});
