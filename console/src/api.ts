// SPDX-License-Identifier: Apache-2.0
// Requests to the server that sent this page, with the key that the user gave.

/** Where the server's routes begin: what stands in front of /ui, which a proxy may have added. */
export const root = typeof location === 'undefined' ? '' : location.pathname.replace(/\/ui(\/.*)?$/, '');

const KEY = 'nereid-key';

/** An answer that says no; `message` is the server's own text. */
export class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export const readKey = () => sessionStorage.getItem(KEY) ?? '';
export function writeKey(key: string) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
  refusedKey = '';
  tell({ isWanted: false });
}

/** What happens to the key: the server asks for one, also because of what the user did, or there is another one. */
export type KeyEvent = { isWanted: false } | { isWanted: true; byUser: boolean };
type KeyListener = (event: KeyEvent) => void;
const keyListeners = new Set<KeyListener>();
export function onKey(listener: KeyListener) {
  keyListeners.add(listener);
  return () => void keyListeners.delete(listener);
}
function tell(event: KeyEvent) {
  for (const listener of keyListeners) listener(event);
}

/** The key that the server has refused, until there is another one; empty: none. */
let refusedKey = '';

/** The server's own words for what went wrong, of a body that may be anything. */
export function textOfError(body: string, status: number): string {
  // A stream whose first response is an error has it as the data of an event.
  const json = /^data:(.*)/.exec(body)?.[1] ?? body;
  try {
    const text = (JSON.parse(json) as { error?: unknown }).error;
    if (typeof text === 'string' && text) return text;
  } catch {
    // Not JSON.
  }
  return json.trim().slice(0, 500) || `the server answered with status ${status}`;
}

export interface Options extends RequestInit {
  /** Whether the user has asked for it just now; otherwise the page does by itself. */
  byUser?: boolean;
}

/** For requests that the user has asked for. */
export const BY_USER: Options = { byUser: true };

export async function send(path: string, { byUser = false, ...options }: Options = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const key = readKey();
  // The server counts wrong keys, and after some it answers nobody at this address any more.
  if (key && key === refusedKey && !byUser) {
    tell({ isWanted: true, byUser });
    throw new Refusal(401, 'the server has refused this key');
  }
  if (key) headers.set('Authorization', `Bearer ${key}`);
  let reply: Response;
  try {
    reply = await fetch(`${root}${path}`, { ...options, headers, cache: 'no-store' });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refusal(0, 'the server does not answer');
  }
  // An answer to a key that is not used any more says nothing of the one that is.
  if (reply.status === 401 && key === readKey()) {
    refusedKey = key;
    tell({ isWanted: true, byUser });
  }
  // What the user has tried with it shows that the server accepts it now, and the page may go on.
  if (reply.ok && key && key === refusedKey) {
    refusedKey = '';
    tell({ isWanted: false });
  }
  return reply;
}

/** Asks and returns the text of the answer; throws a Refusal for every status but 200. */
export async function askText(path: string, options: Options = {}): Promise<string> {
  const reply = await send(path, options);
  const body = await reply.text();
  if (!reply.ok) throw new Refusal(reply.status, textOfError(body, reply.status));
  return body;
}

/** Asks and returns JSON; throws as askText does. */
export async function ask<T>(path: string, options: Options = {}): Promise<T> {
  return JSON.parse((await askText(path, options)) || '{}') as T;
}

export function post<T>(path: string, body: unknown, options: Options = {}): Promise<T> {
  return ask<T>(path, { ...options, method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The path of a model's routes. */
export function modelPath(name: string, version = ''): string {
  return `/v2/models/${encodeURIComponent(name)}${version ? `/versions/${version}` : ''}`;
}

// --- What the routes answer ------------------------------------------------------------------

export interface ServerMetadata {
  name: string;
  version: string;
  extensions: string[];
}
export interface Health {
  ready?: boolean;
  live?: boolean;
  checks?: { name: string; ok: boolean; problems?: string[] }[];
}
export interface IndexEntry {
  name: string;
  version?: string;
  state?: string;
  reason?: string;
}
export interface TensorMetadata {
  name: string;
  datatype: string;
  shape: number[];
}
export interface ModelMetadata {
  name: string;
  versions: string[];
  platform: string;
  inputs: TensorMetadata[];
  outputs: TensorMetadata[];
}
export interface EnsembleStep {
  model_name: string;
  model_version?: string | number;
  input_map?: Record<string, string>;
  output_map?: Record<string, string>;
}
/** The parts of a configuration that the console looks at; the rest is shown as it is. */
export interface ModelConfig {
  name: string;
  platform?: string;
  backend?: string;
  max_batch_size?: number;
  input?: { name: string; data_type: string; dims: (string | number)[]; optional?: boolean }[];
  output?: { name: string; data_type: string; dims: (string | number)[]; label_filename?: string }[];
  instance_group?: { name: string; kind: string; count: number; gpus?: number[] }[];
  dynamic_batching?: Record<string, unknown>;
  sequence_batching?: Record<string, unknown>;
  ensemble_scheduling?: { step: EnsembleStep[] };
  model_transaction_policy?: { decoupled?: boolean };
}
export interface DurationStat {
  count: number;
  ns: number;
}
export interface ModelStat {
  name: string;
  version: string;
  last_inference: number;
  inference_count: number;
  execution_count: number;
  inference_stats: Record<string, DurationStat>;
  batch_stats: { batch_size: number; compute_infer: DurationStat }[];
  memory_usage?: { type: string; id: number; byte_size: number }[];
}
export interface ModelLoad {
  name: string;
  version: string;
  pending: number;
  request: number[];
  queue: number[];
  compute: number[];
  batches_closed: Record<string, number>;
  failures: Record<string, number>;
  refusals: Record<string, number>;
}
export interface ModelLoads {
  bounds_ms: number[];
  models: ModelLoad[];
}

/** Health from the body of an answer, whose status also tells it; throws a Refusal if the body is about something else. */
export function readHealth(kind: 'live' | 'ready', status: number, text: string): Health {
  try {
    const value = JSON.parse(text) as Health | null;
    if (typeof value?.[kind] === 'boolean') return value;
  } catch {
    // Not JSON.
  }
  throw new Refusal(status, textOfError(text, status));
}

/** Health is asked for in words. */
export async function health(kind: 'live' | 'ready', signal: AbortSignal): Promise<Health> {
  const reply = await send(`/v2/health/${kind}?verbose`, { signal });
  return readHealth(kind, reply.status, await reply.text());
}
