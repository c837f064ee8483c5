// SPDX-License-Identifier: Apache-2.0
// One response of generate_stream: a JSON object that has the outputs by their names, beside members of the server's own.
import { textOf } from './api.ts';
import type { TensorMetadata } from './api.ts';
import { formatScalar, parseReply } from './tensors.ts';
import type { Scalar } from './tensors.ts';

export interface StreamedOutputs {
  /** What the model gave, or nothing if `error` says why it did not. */
  outputs: Record<string, unknown>;
  error: string;
}

/** The longest text of an output that is shown. */
const MOST_CHARACTERS = 2000;

/** An object about a model's response names the model; one about an error does not, and may be like an output of that name. */
function errorOf(value: Record<string, unknown>, names: ReadonlySet<string>): string {
  const error = value['error'];
  return typeof error === 'string' && !(names.has('error') && 'model_name' in value) ? error : '';
}

/** The outputs of an event's JSON, or its error. `known` are the outputs of the model. */
export function readResponse(data: string, known: readonly TensorMetadata[]): StreamedOutputs {
  const names = new Set(known.map((output) => output.name));
  let value: Record<string, unknown>;
  try {
    value = Object(parseReply(data)) as Record<string, unknown>;
  } catch (error) {
    return { outputs: {}, error: `this is not JSON: ${textOf(error)}` };
  }
  const error = errorOf(value, names);
  if (error) return { outputs: {}, error };
  // The request has no id, so that the server sends none.
  const isOwn = (name: string) => name === 'model_name' || name === 'model_version' || (name === 'id' && !names.has(name));
  return { outputs: Object.fromEntries(Object.entries(value).filter(([name]) => !isOwn(name))), error: '' };
}

/** A single element, or a flat list of them. */
export function textOfOutput(value: unknown, datatype: string | undefined): string {
  const element = (one: unknown) => (datatype && datatype !== 'BYTES' ? formatScalar(one as Scalar, datatype) : JSON.stringify(one));
  const text = typeof value === 'string' ? value : Array.isArray(value) ? `[${value.map(element).join(', ')}]` : element(value);
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)} …` : text;
}
