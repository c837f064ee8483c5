// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failedOf, groupByName, reasonOf, saysOnDemand, servedOf, stateOf, versionsOf } from './states.ts';

const INDEX = [
  { name: 'fine', version: '1', state: 'READY' },
  { name: 'later', state: 'UNAVAILABLE', reason: 'not loaded: the first request loads it' },
  { name: 'gone', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' },
  { name: 'broken', version: '1', state: 'UNAVAILABLE', reason: 'no backend' },
  { name: 'mixed', version: '1', state: 'UNAVAILABLE', reason: 'unloaded' },
  { name: 'mixed', version: '2', state: 'READY' },
  { name: 'never' },
];
const model = (name: string) => groupByName(INDEX).find((one) => one.name === name) ?? { name: '', versions: [] };

test('a model that nobody has asked for yet has no problem', () => {
  assert.deepEqual(failedOf(INDEX).map((entry) => entry.name), ['broken']);
  for (const name of ['later', 'gone', 'never']) {
    assert.equal(stateOf(model(name)), undefined, name);
    assert.equal(reasonOf(model(name)), '', name);
  }
  assert.equal(stateOf(model('broken')), 'UNAVAILABLE');
  assert.equal(reasonOf(model('broken')), 'no backend');
  assert.equal(stateOf(model('mixed')), 'READY');
});

test('with models on demand, a request reaches those that are not loaded', () => {
  assert.ok(saysOnDemand(INDEX));
  assert.ok(!saysOnDemand(INDEX.filter((entry) => entry.name !== 'later')));
  assert.deepEqual(servedOf(INDEX, false).map((one) => one.name), ['fine', 'mixed']);
  assert.deepEqual(servedOf(INDEX, true).map((one) => one.name), ['fine', 'gone', 'later', 'mixed', 'never']);
});

test('versions change when others are served', () => {
  assert.equal(versionsOf(model('mixed')), '1:UNAVAILABLE,2:READY');
  assert.equal(versionsOf(undefined), '');
});
