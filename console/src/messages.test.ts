// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MOST_KEPT, addMessages, matches, names } from './messages.ts';
import type { Level, Message } from './messages.ts';

const message = (id: number, text = '', level: Level = 'info'): Message => ({ id, time_ms: 0, level, source: 'engine.cc:1', text });

test('a model is named by its whole name', () => {
  assert.ok(names("failed to load 'digits' version 1", 'digits'));
  assert.ok(names('digits', 'digits'));
  assert.ok(!names('digits_2 is loaded', 'digits'));
  assert.ok(!names('my-digits', 'digits'));
  assert.ok(names('digits_2 and digits', 'digits'));
  assert.ok(names('loaded digits. Next', 'digits'));
  assert.ok(names("'a.b*c (d)'", 'a.b*c (d)'));
  assert.ok(!names("'axb*c (d)'", 'a.b*c (d)'));
});

test('letters of all alphabets, and dots within a name, are parts of it', () => {
  assert.ok(!names("failed to load 'llama-3.1'", 'llama-3'));
  assert.ok(!names('v2.llama-3', 'llama-3'));
  assert.ok(names("failed to load 'llama-3.1'", 'llama-3.1'));
  assert.ok(names('failed to load llama-3: no file', 'llama-3'));
  assert.ok(!names("'wörld'", 'w'));
  assert.ok(!names("'naïve'", 've'));
  assert.ok(!names("'𝒳x'", 'x'));
  assert.ok(names('模型 x 已加载', 'x'));
});

test('messages are chosen by level, text, source and model', () => {
  const all = { text: '', level: 'verbose', model: '' } as const;
  assert.ok(matches(message(1, 'x', 'verbose'), all));
  assert.ok(!matches(message(1, 'x', 'info'), { ...all, level: 'warning' }));
  assert.ok(matches(message(1, 'x', 'error'), { ...all, level: 'warning' }));
  assert.ok(matches(message(1, 'Loaded It'), { ...all, text: ' loaded ' }));
  assert.ok(matches(message(1, 'x'), { ...all, text: 'ENGINE' }));
  assert.ok(!matches(message(1, 'x'), { ...all, model: 'm' }));
});

test('messages are kept in a bounded number, and anew after a restart', () => {
  const many = Array.from({ length: MOST_KEPT }, (_, i) => message(i + 1));
  const more = addMessages(many, [message(MOST_KEPT + 1)]);
  assert.equal(more.length, MOST_KEPT);
  assert.equal(more[0]?.id, 2);
  assert.deepEqual(addMessages(more, [message(1), message(2)]).map((one) => one.id), [1, 2]);
  assert.equal(addMessages(more, []).length, MOST_KEPT);
});
