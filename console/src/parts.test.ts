// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelStat } from './api.ts';
import { partsOf } from './parts.ts';

const stat = (success: number, ns: Record<string, number>): ModelStat => ({
  name: 'm',
  version: '1',
  last_inference: 0,
  inference_count: 0,
  execution_count: 0,
  inference_stats: Object.fromEntries(Object.entries(ns).map(([key, value]) => [key, { count: success, ns: value }])),
  batch_stats: [],
});

test('the mean request of all versions is told part by part', () => {
  const found = partsOf([stat(1, { success: 10e6, queue: 7e6, compute_infer: 2e6 }), stat(3, { success: 30e6, queue: 21e6, compute_infer: 6e6 })]);
  assert.equal(found?.total, 10);
  assert.deepEqual(found?.parts.map((part) => [part.key, part.ms]), [['queue', 7], ['compute_infer', 2], ['rest', 1]]);
});

test('without a request there is nothing to tell', () => {
  assert.equal(partsOf([]), null);
  assert.equal(partsOf([stat(0, { success: 0 })]), null);
});
