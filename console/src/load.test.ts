// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textOfError } from './api.ts';
import { EventReader } from './events.ts';
import { milliseconds, number, wholePercent } from './format.ts';
import { layOut } from './graph.ts';
import { COLUMNS, emptyHistory, quantile, startOf, toRows, withSample } from './load.ts';
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

test('the text of an error is the server’s own', () => {
  assert.equal(textOfError('{"error":"no such model"}', 400), 'no such model');
  assert.equal(textOfError('plain', 500), 'plain');
  assert.equal(textOfError('', 502), 'the server answered with status 502');
});

test('numbers are short', () => {
  assert.equal(number(1234567.8), '1,234,568');
  assert.equal(number(0.012345), '0.0123');
  assert.equal(number(null), '–');
  assert.equal(milliseconds(0.05), '50 µs');
  assert.equal(milliseconds(2500), '2.5 s');
  assert.deepEqual([0, 0.002, 0.0101, 0.996, 1.26, null].map(wholePercent), ['0 %', '< 1 %', '1 %', '100 %', '126 %', '–']);
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
