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
  for (const listener of keyListeners) listener(false);
}

type KeyListener = (isWanted: boolean) => void;
const keyListeners = new Set<KeyListener>();
/** Calls `listener` with true when the server asks for a key, and with false when there is another one. */
export function onKey(listener: KeyListener) {
  keyListeners.add(listener);
  return () => void keyListeners.delete(listener);
}

/** The server's own words for what went wrong, of a body that may be anything. */
export function textOfError(body: string, status: number): string {
  try {
    const text = (JSON.parse(body) as { error?: unknown }).error;
    if (typeof text === 'string' && text) return text;
  } catch {
    // Not JSON.
  }
  return body.trim().slice(0, 500) || `the server answered with status ${status}`;
}

export async function send(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const key = readKey();
  if (key) headers.set('Authorization', `Bearer ${key}`);
  let reply: Response;
  try {
    reply = await fetch(`${root}${path}`, { ...options, headers, cache: 'no-store' });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refusal(0, 'the server does not answer');
  }
  if (reply.status === 401) for (const listener of keyListeners) listener(true);
  return reply;
}

/** Asks and returns JSON; throws a Refusal for every status but 200. */
export async function ask<T>(path: string, options: RequestInit = {}): Promise<T> {
  const reply = await send(path, options);
  const body = await reply.text();
  if (!reply.ok) throw new Refusal(reply.status, textOfError(body, reply.status));
  return (body ? JSON.parse(body) : {}) as T;
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return ask<T>(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
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

/** Health is asked for in words, whatever the status. */
export async function health(kind: 'live' | 'ready'): Promise<Health> {
  const reply = await send(`/v2/health/${kind}?verbose`);
  const text = await reply.text();
  try {
    return JSON.parse(text) as Health;
  } catch {
    throw new Refusal(reply.status, textOfError(text, reply.status));
  }
}
