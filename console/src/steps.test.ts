// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelStat } from './api.ts';
import { layOut } from './graph.ts';
import { doneAt, meanOf, slowest, timesOf } from './steps.ts';

const stat = (version: string, count: number, ms: Record<string, number>): ModelStat => ({
  name: 'm',
  version,
  last_inference: 0,
  inference_count: 0,
  execution_count: 0,
  inference_stats: Object.fromEntries(Object.entries(ms).map(([key, value]) => [key, { count, ns: value * count * 1e6 }])),
  batch_stats: [],
});

const STEPS = [
  { model_name: 'quick', model_version: -1, input_map: { x: 'IN' }, output_map: { y: 'middle' } },
  { model_name: 'slow', model_version: '1', input_map: { x: 'middle' }, output_map: { y: 'OUT' } },
  { model_name: 'quick', input_map: { x: 'IN' }, output_map: { y: 'other' } },
  { model_name: 'last', input_map: { x: 'OUT', y: 'other' }, output_map: { y: 'END' } },
];
const MODELS = new Map([
  ['quick', [stat('2', 10, { success: 4, queue: 1, compute_infer: 2 }), stat('1', 10, { success: 6, queue: 3, compute_input: 0.5, compute_infer: 1, compute_output: 0.5 })]],
  ['slow', [stat('2', 10, { success: 1 }), stat('1', 4, { success: 40, queue: 10, compute_infer: 30 })]],
  ['last', [stat('1', 4, { success: 1, compute_infer: 1 })]],
]);

test('a step has the times of the version that it names, or of all', () => {
  assert.deepEqual(timesOf(STEPS, MODELS, 50), [
    { queue: 2, compute: 2, total: 5, share: 0.1 },
    { queue: 10, compute: 30, total: 40, share: 0.8 },
    { queue: 2, compute: 2, total: 5, share: 0.1 },
    { queue: 0, compute: 1, total: 1, share: 0.02 },
  ]);
  assert.equal(meanOf(MODELS.get('quick') ?? []), 5);
  assert.equal(meanOf(MODELS.get('quick') ?? [], '1'), 6);
  assert.equal(meanOf(MODELS.get('quick') ?? [], '3'), null);
  assert.equal(meanOf([]), null);
});

test('a model that has answered nothing, or that is not known, has no times', () => {
  const times = timesOf(STEPS, new Map([['quick', [stat('1', 0, { success: 0 })]], ['slow', [stat('1', 1, { success: 3 })]]]), null);
  assert.deepEqual(times, [null, { queue: 0, compute: 0, total: 3, share: null }, null, null]);
  assert.equal(slowest(times), -1);
});

test('tensors are there when the last step before them is done', () => {
  const graph = layOut(['IN'], ['END'], STEPS);
  const times = timesOf(STEPS, MODELS, 50);
  assert.equal(slowest(times), 1);
  const at = (of: (number | null)[]) => Object.fromEntries(graph.nodes.map((node, i) => [`${node.label} ${node.column}`, of[i]]));
  assert.deepEqual(at(doneAt(graph, times)), { 'IN 0': 0, 'quick 1': 5, 'slow 2': 45, 'last 3': 46, 'END 4': 46 });
  // Behind a step of which nothing is known, nothing is.
  const partly = doneAt(graph, times.map((time, i) => (i === 1 ? null : time)));
  assert.deepEqual(at(partly), { 'IN 0': 0, 'quick 1': 5, 'slow 2': null, 'last 3': null, 'END 4': null });
});
