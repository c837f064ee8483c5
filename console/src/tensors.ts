// SPDX-License-Identifier: Apache-2.0
// From what is typed into a form to the tensors of a v2 request, and back.
import type { TensorMetadata } from './api.ts';

export type Scalar = number | string | boolean;
/** A tensor as JSON of the v2 protocol carries it. */
export interface Tensor {
  name: string;
  datatype: string;
  shape: number[];
  data: Scalar[];
}

/** The bounds of the integer types. 64-bit ones are checked as text, because numbers here are doubles. */
const RANGES: Record<string, [number, number]> = {
  INT8: [-128, 127],
  INT16: [-32768, 32767],
  INT32: [-2147483648, 2147483647],
  UINT8: [0, 255],
  UINT16: [0, 65535],
  UINT32: [0, 4294967295],
  INT64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  UINT64: [0, Number.MAX_SAFE_INTEGER],
};
const FLOATS = new Set(['FP16', 'BF16', 'FP32', 'FP64']);
/** Those that have no more digits than FP32. */
const SINGLES = new Set(['FP16', 'BF16', 'FP32']);
/** Types whose values JSON of the protocol cannot carry. */
const BINARY_ONLY = new Set(['FP16', 'BF16']);
/** The most values that the form makes up by itself. */
const MOST_FILLED = 1 << 20;

export function isNumeric(datatype: string): boolean {
  return FLOATS.has(datatype) || datatype in RANGES;
}
export function isFloat(datatype: string): boolean {
  return FLOATS.has(datatype);
}

/** Why a tensor of this type cannot be sent from here; empty if it can. */
export function whyNot(datatype: string): string {
  return BINARY_ONLY.has(datatype)
    ? `${datatype} has no form in JSON: send this input as binary data, as Triton's clients do`
    : '';
}

/** How many values a shape has; null if it is not known or not a shape. */
export function elementCount(shape: readonly number[]): number | null {
  let count = 1;
  for (const dim of shape) {
    if (!Number.isInteger(dim) || dim < 0) return null;
    count *= dim;
    if (count > Number.MAX_SAFE_INTEGER) return null;
  }
  return count;
}

/** A shape to begin with: 1 for each dimension that the model leaves open. */
export function firstShape(tensor: TensorMetadata): number[] {
  return tensor.shape.map((dim) => (dim < 0 ? 1 : dim));
}

/** Reads "[1, 64]", "1x64" or "1 64"; throws what is wrong with it. */
export function parseShape(text: string, wanted: readonly number[]): number[] {
  const words = text.replace(/[[\]]/g, ' ').split(/[\s,x×]+/).filter(Boolean);
  const shape = words.map((word) => {
    if (!/^\d{1,15}$/.test(word)) throw new Error(`"${word}" is not a dimension: expected a number that is not negative`);
    return Number(word);
  });
  if (shape.length !== wanted.length) {
    throw new Error(`the shape has ${shape.length} dimensions; the model wants ${wanted.length}: [${wanted.join(', ')}]`);
  }
  shape.forEach((dim, i) => {
    const want = wanted[i] ?? -1;
    if (want >= 0 && dim !== want) throw new Error(`dimension ${i + 1} is ${dim}; the model wants ${want}`);
  });
  return shape;
}

/** The shape that fits to a number of values by its last open dimension; null if none does. */
export function fitShape(shape: readonly number[], wanted: readonly number[], count: number): number[] | null {
  const open = wanted.findLastIndex((dim) => dim < 0);
  if (open < 0 || shape.length !== wanted.length || count === 0) return null;
  const others = elementCount(shape.filter((_, i) => i !== open));
  if (!others || count % others !== 0) return null;
  return shape.map((dim, i) => (i === open ? count / others : dim));
}

/** Strings, and what is neither a part of them nor JSON as browsers know it, or would be rounded. */
const TOKENS = /"[^"\\]*(?:\\[^][^"\\]*)*"|-?(?:NaN|Infinity)|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const isLongInteger = (token: string) => /^-?\d{16,}$/.test(token);

/**
 * Reads JSON as the server writes it, where NaN and Infinity are numbers and integers have 64 bits. Both become strings of
 * the same text here, since a number of a browser has 53 bits for integers.
 */
export function parseReply(text: string): unknown {
  return JSON.parse(text.replace(TOKENS, (token) => (/^-?[NI]/.test(token) || isLongInteger(token) ? `"${token}"` : token)));
}

/** An integer in JSON that a browser would change; none if there is no such. */
export function findInexact(text: string): string | undefined {
  return text.match(TOKENS)?.find((token) => isLongInteger(token) && !Number.isSafeInteger(Number(token)));
}

/**
 * An element of a tensor as text. The server writes the numbers of FP32 with the digits that a double needs; here they have
 * as many as tell them from others of FP32. All else is as it came.
 */
export function formatScalar(value: Scalar, datatype: string): string {
  if (typeof value !== 'number' || !SINGLES.has(datatype)) return String(value);
  const short = [7, 8].map((digits) => Number(value.toPrecision(digits))).find((one) => Math.fround(one) === value);
  return String(short ?? Number(value.toPrecision(9)));
}

function flatten(value: unknown, out: unknown[]): void {
  if (Array.isArray(value)) for (const element of value) flatten(element, out);
  else out.push(value);
}

function toNumber(value: unknown, datatype: string, position: number): number {
  const where = `value ${position + 1}`;
  const parsed = typeof value === 'number' ? value : typeof value === 'string' && value.trim() ? Number(value) : NaN;
  if (!Number.isFinite(parsed)) throw new Error(`${where} (${JSON.stringify(value)}) is not a number`);
  const range = RANGES[datatype];
  if (!range) return parsed;
  if (!Number.isInteger(parsed)) throw new Error(`${where} is ${parsed}; ${datatype} takes whole numbers`);
  if (parsed < range[0] || parsed > range[1]) {
    throw new Error(`${where} is ${parsed}; ${datatype} takes ${range[0]} to ${range[1]} here`);
  }
  return parsed;
}

function toBool(value: unknown, position: number): boolean {
  if (typeof value === 'boolean') return value;
  if (value === 0 || value === '0' || value === 'false') return false;
  if (value === 1 || value === '1' || value === 'true') return true;
  throw new Error(`value ${position + 1} (${JSON.stringify(value)}) is neither true nor false`);
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** The values that a text stands for: JSON, or numbers with blanks or commas between them, or a line for each string. */
export function parseValues(text: string, datatype: string): Scalar[] {
  const trimmed = text.trim();
  let values: unknown[] = [];
  if (trimmed.startsWith('[')) {
    try {
      flatten(parseReply(trimmed), values);
    } catch (error) {
      // Prompts of chats begin with a bracket, too: "[INST] hello [/INST]".
      if (datatype !== 'BYTES') throw new Error(`this is not JSON: ${(error as Error).message}`);
      values = linesOf(text);
    }
  } else if (datatype === 'BYTES') {
    values = linesOf(text);
  } else {
    values = trimmed.split(/[\s,;]+/).filter(Boolean);
  }
  return values.map((value, i) => {
    if (datatype === 'BYTES') return typeof value === 'string' ? value : JSON.stringify(value);
    if (datatype === 'BOOL') return toBool(value, i);
    return toNumber(value, datatype, i);
  });
}

/** A tensor of what the form has; throws what is wrong, for the user. */
export function makeTensor(input: TensorMetadata, shapeText: string, valuesText: string): Tensor {
  const shape = parseShape(shapeText, input.shape);
  const data = parseValues(valuesText, input.datatype);
  const count = elementCount(shape);
  if (count !== data.length) {
    throw new Error(`the shape [${shape.join(', ')}] has ${count ?? 'too many'} values, but there are ${data.length}`);
  }
  return { name: input.name, datatype: input.datatype, shape, data };
}

/** A text of values for a shape: all the same, or random ones. */
export function fillText(datatype: string, shape: readonly number[], kind: 'zeros' | 'ones' | 'random'): string {
  const count = Math.min(elementCount(shape) ?? 0, MOST_FILLED);
  const one = () => {
    if (datatype === 'BYTES') return kind === 'zeros' ? '0' : kind === 'ones' ? '1' : Math.random().toString(36).slice(2, 8);
    if (datatype === 'BOOL') return kind === 'zeros' ? 'false' : kind === 'ones' ? 'true' : String(Math.random() < 0.5);
    if (kind !== 'random') return kind === 'zeros' ? '0' : '1';
    return isFloat(datatype) ? Math.random().toFixed(3) : String(Math.floor(Math.random() * 10));
  };
  return Array.from({ length: count }, one).join(datatype === 'BYTES' ? '\n' : ' ');
}

/** A batch dimension may be left open even where all others are known. */
export interface Picture {
  width: number;
  height: number;
  channels: number;
  layout: 'HWC' | 'CHW';
  /** Of the whole tensor. */
  shape: number[];
  /** Whether the model leaves the size open. */
  isOpen: boolean;
}

const OPEN_SIZE = 224;

/** How an input may be read as a picture; null if it does not look like one. */
export function asPicture(input: TensorMetadata): Picture | null {
  if (!isNumeric(input.datatype) || whyNot(input.datatype)) return null;
  const dims = input.shape;
  const size = (dim: number) => (dim < 0 ? OPEN_SIZE : dim);
  const make = (leading: number, h: number, w: number, channels: number, layout: 'HWC' | 'CHW'): Picture | null => {
    const height = size(h);
    const width = size(w);
    if (height < 4 || width < 4 || height > 4096 || width > 4096) return null;
    const ones = Array.from({ length: leading }, () => 1);
    const rest = layout === 'HWC' ? [height, width, channels] : [channels, height, width];
    return { width, height, channels, layout, shape: [...ones, ...rest], isOpen: h < 0 || w < 0 };
  };
  const at = (fromEnd: number) => dims[dims.length - fromEnd] ?? NaN;
  const isChannels = (dim: number) => dim === 1 || dim === 3;
  const leadingIsOne = (count: number) => dims.slice(0, count).every((dim) => dim === 1 || dim < 0);
  if (dims.length >= 3 && leadingIsOne(dims.length - 3)) {
    if (isChannels(at(3))) return make(dims.length - 3, at(2), at(1), at(3), 'CHW');
    if (isChannels(at(1))) return make(dims.length - 3, at(3), at(2), at(1), 'HWC');
  }
  // A square that lies flat, such as the 64 gray levels of a small digit.
  if (dims.length >= 1 && leadingIsOne(dims.length - 1)) {
    const side = Math.sqrt(at(1));
    if (Number.isInteger(side) && side >= 8 && side <= 64) {
      const ones = dims.slice(0, -1).map(() => 1);
      return { width: side, height: side, channels: 1, layout: 'HWC', shape: [...ones, side * side], isOpen: false };
    }
  }
  if (dims.length >= 2 && leadingIsOne(dims.length - 2) && at(1) === at(2) && at(1) >= 8 && at(1) <= 64) {
    const ones = dims.slice(0, -2).map(() => 1);
    return { width: at(1), height: at(2), channels: 1, layout: 'HWC', shape: [...ones, at(2), at(1)], isOpen: false };
  }
  return null;
}

export const SCALES = {
  '0 to 255': [1, 0],
  '0 to 1': [1 / 255, 0],
  '-1 to 1': [1 / 127.5, -1],
  '0 to 16': [16 / 255, 0],
} as const satisfies Record<string, readonly [number, number]>;
export type Scale = keyof typeof SCALES;

/** The scale that models of such an input usually want. */
export function usualScale(picture: Picture, datatype: string): Scale {
  if (!isFloat(datatype)) return '0 to 255';
  // Scans of 8 by 8 have levels from 0 to 16 in the set of digits that everybody uses.
  return picture.width === 8 && picture.height === 8 && picture.channels === 1 ? '0 to 16' : '0 to 1';
}

/** The values of a picture, from pixels with four bytes each (red, green, blue, opacity). */
export function pixelsToValues(pixels: ArrayLike<number>, picture: Picture, scale: Scale, isWhole: boolean): number[] {
  const [factor, offset] = SCALES[scale];
  const area = picture.width * picture.height;
  const values = new Array<number>(area * picture.channels);
  for (let i = 0; i < area; ++i) {
    const [r, g, b] = [pixels[i * 4] ?? 0, pixels[i * 4 + 1] ?? 0, pixels[i * 4 + 2] ?? 0];
    const levels = picture.channels === 1 ? [0.299 * r + 0.587 * g + 0.114 * b] : [r, g, b];
    levels.forEach((level, c) => {
      const value = level * factor + offset;
      const at = picture.layout === 'HWC' ? i * picture.channels + c : c * area + i;
      values[at] = isWhole ? Math.round(value) : Number(value.toFixed(4));
    });
  }
  return values;
}

/** One class of an output that the server was asked to classify: "score:index[:label]". */
export interface ClassScore {
  score: number;
  index: number;
  label: string;
}
export function parseClass(text: string): ClassScore | null {
  const match = /^([^:]+):(\d+)(?::(.*))?$/s.exec(text);
  const score = Number(match?.[1]);
  if (!match || !Number.isFinite(score)) return null;
  return { score, index: Number(match[2]), label: match[3] ?? '' };
}

/** The classes of an output that the server was asked to classify; null if it is not one. */
export function classesOf(output: { datatype: string; data: Scalar[] }): ClassScore[] | null {
  const classes = output.datatype === 'BYTES' ? output.data.map((text) => parseClass(String(text))) : [];
  return classes.length > 0 && classes.every((one) => one !== null) ? classes : null;
}

/** The largest values of a short list of scores, with their positions; null if it does not look like one. */
export function topScores(output: { datatype: string; shape: number[]; data: Scalar[] }, most = 5): ClassScore[] | null {
  if (!isFloat(output.datatype) || output.data.length < 2 || output.data.length > 10000) return null;
  if (output.shape.slice(0, -1).some((dim) => dim !== 1)) return null;
  // NaN has no place in an order.
  if (!output.data.every((score) => Number.isFinite(score))) return null;
  return output.data
    .map((score, index) => ({ score: Number(score), index, label: '' }))
    .sort((a, b) => b.score - a.score)
    .slice(0, most);
}
