// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readResponse, textOfOutput } from './streamed.ts';

const known = (...names: string[]) => names.map((name) => ({ name, datatype: 'BYTES', shape: [1] }));
const OF_SERVER = '"model_name":"m","model_version":"1"';

test('what is not an output is the server’s own', () => {
  assert.deepEqual(readResponse(`{"id":"7",${OF_SERVER},"OUT":[1,2]}`, known('OUT')), { outputs: { OUT: [1, 2] }, error: '' });
  assert.deepEqual(readResponse('{"error":"it broke"}', known('OUT')), { outputs: {}, error: 'it broke' });
  assert.match(readResponse('nonsense', []).error, /this is not JSON/);
  assert.deepEqual(readResponse('null', []), { outputs: {}, error: '' });
});

test('an output may be called as what the server sends', () => {
  const outputs = known('error', 'id');
  assert.deepEqual(readResponse(`{${OF_SERVER},"error":"none so far","id":"x"}`, outputs), { outputs: { error: 'none so far', id: 'x' }, error: '' });
  assert.deepEqual(readResponse('{"error":"it broke"}', outputs), { outputs: {}, error: 'it broke' });
});

test('elements are as exact as the server has sent them', () => {
  const { outputs } = readResponse(`{${OF_SERVER},"A":[9007199254740993,1],"B":NaN,"C":0.30000001192092896,"D":"a"}`, []);
  assert.equal(textOfOutput(outputs['A'], 'INT64'), '[9007199254740993, 1]');
  assert.equal(textOfOutput(outputs['B'], 'FP32'), 'NaN');
  assert.equal(textOfOutput(outputs['C'], 'FP32'), '0.3');
  assert.equal(textOfOutput(outputs['D'], 'BYTES'), 'a');
  assert.equal(textOfOutput(['a', 'b'], 'BYTES'), '["a", "b"]');
  assert.equal(textOfOutput(true, undefined), 'true');
  assert.equal(textOfOutput('x'.repeat(3000), 'BYTES').length, 2002);
});
