// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lengthOf, slowest, spansOf } from './spans.ts';
import type { Trace, TracedRequest } from './spans.ts';

const request = (id: number, parent: number, model: string, moments: [string, number][]): TracedRequest => ({
  id,
  parent_id: parent,
  model,
  version: 1,
  request_id: '',
  moments: moments.map(([name, ns]) => ({ name, ns })),
});
const trace = (...requests: TracedRequest[]): Trace => ({ id: 1, time_ms: 0, is_cut: false, requests });
const step = (id: number, parent: number, model: string, at: number) =>
  request(id, parent, model, [
    ['REQUEST_START', at],
    ['QUEUE_START', at + 1],
    ['COMPUTE_START', at + 3],
    ['COMPUTE_INPUT_END', at + 4],
    ['COMPUTE_OUTPUT_START', at + 9],
    ['COMPUTE_END', at + 10],
    ['REQUEST_END', at + 11],
  ]);

test('a request has its phases behind it, and what the protocol did around it', () => {
  const one = step(1, 0, 'm', 10);
  one.moments.unshift({ name: 'HTTP_RECV_START', ns: 0 }, { name: 'HTTP_RECV_END', ns: 8 });
  one.moments.push({ name: 'INFER_RESPONSE_COMPLETE', ns: 20 }, { name: 'HTTP_SEND_START', ns: 22 }, { name: 'HTTP_SEND_END', ns: 30 });
  const spans = spansOf(trace(one));
  assert.deepEqual(
    spans.map((span) => [span.label, span.depth, span.start, span.end]),
    [
      ['the request is received (HTTP)', 0, 0, 8],
      ['m 1', 0, 10, 21],
      ['waits in the queue', 1, 11, 13],
      ['inputs are made ready', 1, 13, 14],
      ['the model runs', 1, 14, 19],
      ['outputs are collected', 1, 19, 20],
      ['a response is complete', 0, 20, null],
      ['the response is sent (HTTP)', 0, 22, 30],
    ],
  );
  assert.equal(lengthOf(trace(one)), 30);
  assert.equal(slowest(spans)?.label, 'the request is received (HTTP)');
});

test('the steps of an ensemble stand behind it, by their beginning', () => {
  const spans = spansOf(trace(request(1, 0, 'all', [['REQUEST_START', 0], ['REQUEST_END', 50]]), step(3, 1, 'late', 20), step(2, 1, 'early', 5)));
  assert.deepEqual(
    spans.filter((span) => span.kind === 'request').map((span) => [span.model, span.depth]),
    [['all', 0], ['early', 1], ['late', 1]],
  );
});

test('a decoupled model executes until its last response', () => {
  const one = request(1, 0, 'm', [['COMPUTE_START', 1], ['COMPUTE_INPUT_END', 2], ['COMPUTE_OUTPUT_START', 3], ['COMPUTE_END', 4], ['COMPUTE_END', 9]]);
  assert.equal(spansOf(trace(one)).at(-1)?.end, 9);
});

test('nothing, circles and requests without a parent end, too', () => {
  assert.deepEqual(spansOf(trace()), []);
  assert.equal(lengthOf(trace()), 1);
  assert.equal(slowest([]), null);
  const lost = step(5, 4, 'child of one that was not kept', 0);
  assert.equal(spansOf(trace(lost))[0]?.model, lost.model);
  assert.equal(spansOf(trace(step(1, 2, 'a', 0), step(2, 1, 'b', 0))).length, 0);
});
