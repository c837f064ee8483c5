// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asPicture, classesOf, fillText, findInexact, firstShape, fitShape, formatScalar, makeTensor, parseClass, parseReply, parseShape, parseValues, pixelsToValues, topScores, usualScale } from './tensors.ts';

const input = (datatype: string, shape: number[]) => ({ name: 'x', datatype, shape });

test('numbers may stand with blanks, commas, lines, or as nested JSON', () => {
  for (const text of ['1 2.5 -3', '1, 2.5, -3', '1\n2.5\n-3\n', '[[1], [2.5, -3]]', '["1", 2.5, -3]']) {
    assert.deepEqual(parseValues(text, 'FP32'), [1, 2.5, -3], text);
  }
  assert.deepEqual(parseValues('', 'FP32'), []);
});

test('what a type cannot hold is said with its position', () => {
  assert.throws(() => parseValues('1 2 x', 'FP32'), /value 3 \("x"\) is not a number/);
  assert.throws(() => parseValues('1 2.5', 'INT32'), /value 2 is 2.5; INT32 takes whole numbers/);
  assert.throws(() => parseValues('300', 'UINT8'), /value 1 is 300; UINT8 takes 0 to 255 here/);
  assert.throws(() => parseValues('9007199254740993', 'INT64'), /INT64 takes -9007199254740991 to 9007199254740991 here/);
  assert.throws(() => parseValues('[1, null]', 'INT32'), /value 2 \(null\) is not a number/);
  assert.throws(() => parseValues('[1, ', 'INT32'), /this is not JSON/);
  assert.throws(() => parseValues('maybe', 'BOOL'), /neither true nor false/);
});

test('each line is a text, unless they are JSON', () => {
  assert.deepEqual(parseValues('a b\n\nc\n', 'BYTES'), ['a b', '', 'c']);
  assert.deepEqual(parseValues('["a\\nb", 7, {"k": 1}]', 'BYTES'), ['a\nb', '7', '{"k":1}']);
  assert.deepEqual(parseValues('true 0 1 false', 'BOOL'), [true, false, true, false]);
  assert.deepEqual(parseValues('[INST] hello [/INST]\n', 'BYTES'), ['[INST] hello [/INST]']);
  assert.deepEqual(parseValues('[9007199254740993]', 'BYTES'), ['9007199254740993']);
});

test('a reply is read as the server writes it', () => {
  assert.deepEqual(parseReply('[NaN, -Infinity,Infinity]'), ['NaN', '-Infinity', 'Infinity']);
  assert.deepEqual(parseReply('[-9223372036854775808, 18446744073709551615]'), ['-9223372036854775808', '18446744073709551615']);
  const untouched = '[0.12345678901234567, 1e400, 1234567890123456789.5, 1E-1234567890123456]';
  assert.deepEqual(parseReply(untouched), JSON.parse(untouched));
  assert.deepEqual(parseReply('[999999999999999, -1, 0]'), [999999999999999, -1, 0]);
  const texts = ['NaN', 'a "quoted" NaN, 12345678901234567', '\\', '\\"', 'Infinity\n', ''];
  assert.deepEqual(parseReply(JSON.stringify({ 'NaN "': texts, n: null, t: true })), { 'NaN "': texts, n: null, t: true });
  assert.throws(() => parseReply('[1, '), SyntaxError);
  assert.throws(() => parseReply('["open'), SyntaxError);
  const long = 'x\\"'.repeat(1 << 20);
  assert.deepEqual(parseReply(JSON.stringify([long])), [long]);
});

test('integers that a browser would change are found', () => {
  assert.equal(findInexact('{"a": "9007199254740993", "b": 9007199254740991}'), undefined);
  assert.equal(findInexact('{"sequence_id": 9007199254740993}'), '9007199254740993');
});

test('only what has the digits of FP32 is shortened', () => {
  assert.equal(formatScalar(2147483647, 'INT32'), '2147483647');
  assert.equal(formatScalar('9223372036854775807', 'INT64'), '9223372036854775807');
  assert.equal(formatScalar(0.1234567890123, 'FP64'), '0.1234567890123');
  assert.equal(formatScalar(0.10000000149011612, 'FP32'), '0.1');
  for (const value of [16777217, 16777216, 1 / 3, 3.4e38, 1e-45, -0.1, 123456789]) {
    const single = Math.fround(value);
    const text = formatScalar(single, 'FP32');
    assert.equal(Math.fround(Number(text)), single, text);
    assert.ok(text.replace(/[-.]|e.*|^0\.0*/g, '').length <= 9, text);
  }
  assert.equal(formatScalar('NaN', 'FP32'), 'NaN');
  assert.equal(formatScalar(true, 'BOOL'), 'true');
});

test('a shape fits to the dimensions that the model fixes', () => {
  assert.deepEqual(parseShape('[2, 64]', [-1, 64]), [2, 64]);
  assert.deepEqual(parseShape('2x64', [-1, 64]), [2, 64]);
  assert.deepEqual(parseShape('[]', []), []);
  assert.throws(() => parseShape('[2, 65]', [-1, 64]), /dimension 2 is 65; the model wants 64/);
  assert.throws(() => parseShape('[64]', [-1, 64]), /has 1 dimensions; the model wants 2/);
  assert.throws(() => parseShape('[-1, 64]', [-1, 64]), /"-1" is not a dimension/);
  assert.deepEqual(firstShape(input('FP32', [-1, 3, -1])), [1, 3, 1]);
});

test('the last open dimension follows the number of values', () => {
  assert.deepEqual(fitShape([1], [-1], 3), [3]);
  assert.deepEqual(fitShape([2, 1, 4], [-1, -1, 4], 24), [2, 3, 4]);
  assert.equal(fitShape([2, 1], [-1, -1], 3), null);
  assert.equal(fitShape([3], [3], 4), null);
  assert.equal(fitShape([1], [-1], 0), null);
});

test('a tensor has as many values as its shape says', () => {
  assert.deepEqual(makeTensor(input('INT32', [-1, 2]), '[2, 2]', '1 2 3 4'), { name: 'x', datatype: 'INT32', shape: [2, 2], data: [1, 2, 3, 4] });
  assert.throws(() => makeTensor(input('INT32', [-1, 2]), '[2, 2]', '1 2 3'), /has 4 values, but there are 3/);
});

test('what the form fills in is what it accepts', () => {
  for (const datatype of ['FP32', 'INT8', 'UINT64', 'BOOL', 'BYTES']) {
    for (const kind of ['zeros', 'ones', 'random'] as const) {
      assert.equal(parseValues(fillText(datatype, [2, 3], kind), datatype).length, 6, `${datatype} ${kind}`);
    }
  }
});

test('inputs that look like pictures are known by their shape', () => {
  const picture = (shape: number[], datatype = 'FP32') => {
    const found = asPicture(input(datatype, shape));
    return found && [found.width, found.height, found.channels, found.layout, found.shape];
  };
  assert.deepEqual(picture([-1, 3, 32, 48]), [48, 32, 3, 'CHW', [1, 3, 32, 48]]);
  assert.deepEqual(picture([1, 32, 48, 3]), [48, 32, 3, 'HWC', [1, 32, 48, 3]]);
  assert.deepEqual(picture([3, -1, -1]), [224, 224, 3, 'CHW', [3, 224, 224]]);
  assert.deepEqual(picture([-1, 64]), [8, 8, 1, 'HWC', [1, 64]]);
  assert.deepEqual(picture([-1, 28, 28]), [28, 28, 1, 'HWC', [1, 28, 28]]);
  assert.equal(picture([16]), null);
  assert.equal(picture([-1, 3]), null);
  assert.equal(picture([64], 'BYTES'), null);
  assert.equal(picture([64], 'FP16'), null);
});

test('pixels land where the layout wants them, on the scale that was chosen', () => {
  const pixels = [255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255, 255, 255, 255];
  const square = { width: 2, height: 2, channels: 3, shape: [3, 2, 2], isOpen: false };
  assert.deepEqual(pixelsToValues(pixels, { ...square, layout: 'CHW' }, '0 to 1', false), [1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
  assert.deepEqual(pixelsToValues(pixels, { ...square, layout: 'HWC' }, '0 to 255', true).slice(0, 6), [255, 0, 0, 0, 255, 0]);
  assert.deepEqual(pixelsToValues([255, 255, 255, 255], { width: 1, height: 1, channels: 1, layout: 'HWC', shape: [1], isOpen: false }, '0 to 16', false), [16]);
  const digit = asPicture(input('FP32', [64]));
  assert.ok(digit);
  assert.equal(usualScale(digit, 'FP32'), '0 to 16');
  assert.equal(usualScale(digit, 'UINT8'), '0 to 255');
});

test('classes and scores are read from outputs', () => {
  assert.deepEqual(parseClass('0.9:7:seven: yes'), { score: 0.9, index: 7, label: 'seven: yes' });
  assert.deepEqual(parseClass('1e-3:2'), { score: 0.001, index: 2, label: '' });
  assert.equal(parseClass('hello'), null);
  const scores = topScores({ datatype: 'FP32', shape: [1, 3], data: [0.1, 0.7, 0.2] }, 2);
  assert.deepEqual(scores?.map((one) => one.index), [1, 2]);
  assert.equal(topScores({ datatype: 'FP32', shape: [2, 2], data: [1, 2, 3, 4] }), null);
  assert.equal(topScores({ datatype: 'FP32', shape: [3], data: [1, 'NaN', 2] }), null);
  assert.deepEqual(classesOf({ datatype: 'BYTES', data: ['0.9:1:one', '0.1:0:zero'] })?.map((one) => one.label), ['one', 'zero']);
  assert.equal(classesOf({ datatype: 'BYTES', data: ['0.9:1', 'text'] }), null);
  assert.equal(classesOf({ datatype: 'BYTES', data: [] }), null);
  assert.equal(classesOf({ datatype: 'FP32', data: [1] }), null);
});
