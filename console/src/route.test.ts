// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linkTo, partsOf } from './route.ts';

test('an address has parts, whatever stands in them', () => {
  assert.deepEqual(partsOf(''), []);
  assert.deepEqual(partsOf('#/'), []);
  assert.deepEqual(partsOf('#/models/my%20model'), ['models', 'my model']);
  for (const name of ['a/b', 'é %', '100%', '#']) assert.deepEqual(partsOf(linkTo('models', name)), ['models', name]);
});

test('a percent sign that somebody has typed stands for itself', () => {
  assert.deepEqual(partsOf('#/models/100%'), ['models', '100%']);
  assert.deepEqual(partsOf('#/models/%zz/%41'), ['models', '%zz', 'A']);
});
