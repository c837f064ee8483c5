// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clockOfDay, milliseconds, number, wholePercent } from './format.ts';
import { indented } from './indent.ts';

test('numbers are short', () => {
  assert.equal(number(1234567.8), '1,234,568');
  assert.equal(number(0.012345), '0.0123');
  assert.equal(number(null), '–');
  assert.equal(milliseconds(0.05), '50 µs');
  assert.equal(milliseconds(2500), '2.5 s');
  assert.deepEqual([0, 0.002, 0.0101, 0.996, 1.26, null].map(wholePercent), ['0 %', '< 1 %', '1 %', '100 %', '126 %', '–']);
});

test('a time has its day if that is not today', () => {
  const now = new Date(2026, 2, 5, 9, 0, 0).getTime();
  assert.equal(clockOfDay(new Date(2026, 2, 5, 8, 7, 6).getTime(), now), '08:07:06');
  assert.equal(clockOfDay(new Date(2026, 2, 4, 23, 59, 59).getTime(), now), '2026-03-04 23:59:59');
  assert.equal(clockOfDay(new Date(2025, 2, 5, 9, 0, 0).getTime(), now), '2025-03-05 09:00:00');
});

test('JSON in lines is the same JSON', () => {
  const value = { a: [1, [], {}, { b: 'x, "y": [\\' }], c: null, d: [[true]], e: '' };
  assert.equal(indented(JSON.stringify(value)), JSON.stringify(value, null, 2));
  assert.equal(indented('[18446744073709551615,-1.5e3]'), '[\n  18446744073709551615,\n  -1.5e3\n]');
  assert.equal(indented('{}'), '{}');
});
