// SPDX-License-Identifier: Apache-2.0
// From the moments of a trace to the bars of a waterfall.

/** What /ui/api/traces/ID answers. Times count from the first moment of the trace. */
export interface TracedRequest {
  id: number;
  parent_id: number;
  model: string;
  version: number;
  request_id: string;
  moments: { name: string; ns: number }[];
}
export interface Trace {
  id: number;
  time_ms: number;
  is_cut: boolean;
  requests: TracedRequest[];
}
export type SpanKind = 'request' | 'queue' | 'compute' | 'transfer' | 'other';
export interface Span {
  label: string;
  kind: SpanKind;
  /** How far to the right: 0 for what the client sees. */
  depth: number;
  start: number;
  /** null: only a moment. */
  end: number | null;
  /** The model, for the span of a request. */
  model: string;
}

const PHASES: { from: string; to: string; label: string; kind: SpanKind }[] = [
  { from: 'QUEUE_START', to: 'COMPUTE_START', label: 'waits in the queue', kind: 'queue' },
  { from: 'COMPUTE_START', to: 'COMPUTE_INPUT_END', label: 'inputs are made ready', kind: 'compute' },
  { from: 'COMPUTE_INPUT_END', to: 'COMPUTE_OUTPUT_START', label: 'the model runs', kind: 'compute' },
  { from: 'COMPUTE_OUTPUT_START', to: 'COMPUTE_END', label: 'outputs are collected', kind: 'compute' },
];
const OWN = new Set(['REQUEST_START', 'REQUEST_END', ...PHASES.flatMap((phase) => [phase.from, phase.to])]);
const TRANSFERS: Record<string, string> = {
  HTTP_RECV: 'the request is received (HTTP)',
  HTTP_SEND: 'the response is sent (HTTP)',
  GRPC_WAITREAD: 'the request is received (gRPC)',
  GRPC_SEND: 'the response is sent (gRPC)',
};

/** Moments that stand by themselves. */
const MOMENTS: Record<string, string> = { INFER_RESPONSE_COMPLETE: 'a response is complete' };

const lower = (name: string) => name.toLowerCase().replaceAll('_', ' ');

/** What is neither a request nor one of its phases: pairs NAME_START and NAME_END, and single moments. */
function others(request: TracedRequest, depth: number): Span[] {
  const spans: Span[] = [];
  const open = new Map<string, Span>();
  for (const { name, ns } of request.moments) {
    if (OWN.has(name)) continue;
    const stem = name.replace(/_(START|END)$/, '');
    const started = open.get(stem);
    if (name.endsWith('_END') && started) {
      started.end = ns;
      open.delete(stem);
      continue;
    }
    const span: Span = { label: TRANSFERS[stem] ?? MOMENTS[stem] ?? lower(stem), kind: TRANSFERS[stem] ? 'transfer' : 'other', depth, start: ns, end: null, model: '' };
    if (name.endsWith('_START')) open.set(stem, span);
    spans.push(span);
  }
  return spans;
}

function phases(request: TracedRequest, depth: number): Span[] {
  const at = new Map<string, number>();
  for (const { name, ns } of request.moments) if (!at.has(name)) at.set(name, ns);
  // A decoupled model ends its execution once, however many responses it has sent.
  const end = request.moments.findLast((moment) => moment.name === 'COMPUTE_END');
  if (end) at.set('COMPUTE_END', end.ns);
  return PHASES.flatMap(({ from, to, label, kind }) => {
    const [start, stop] = [at.get(from), at.get(to)];
    return start === undefined || stop === undefined ? [] : [{ label, kind, depth, start, end: Math.max(start, stop), model: '' }];
  });
}

function requestSpan(request: TracedRequest, depth: number): Span | null {
  const start = request.moments.find((moment) => moment.name === 'REQUEST_START');
  if (!start) return null;
  const end = request.moments.findLast((moment) => moment.name === 'REQUEST_END');
  return { label: `${request.model} ${request.version}`, kind: 'request', depth, start: start.ns, end: end?.ns ?? null, model: request.model };
}

/** The spans of a trace, each behind what it is a part of, otherwise by their beginning. */
export function spansOf(trace: Trace): Span[] {
  const known = new Set(trace.requests.map((request) => request.id));
  const firstOf = (request: TracedRequest) => Math.min(...request.moments.map((moment) => moment.ns));
  const list = (requests: TracedRequest[], depth: number, seen: Set<number>): Span[] =>
    [...requests]
      .sort((a, b) => firstOf(a) - firstOf(b))
      .flatMap((request) => {
        if (seen.has(request.id)) return [];
        seen.add(request.id);
        const own = requestSpan(request, depth);
        const inner = own ? depth + 1 : depth;
        const parts = [...phases(request, inner)].sort((a, b) => a.start - b.start);
        const children = list(trace.requests.filter((one) => one.parent_id === request.id), inner, seen);
        // What the protocol does before is first, also where clocks show no difference.
        const around = others(request, depth);
        const isEarly = (span: Span) => !own || span.start <= own.start;
        const [early, late] = [around.filter(isEarly), around.filter((span) => !isEarly(span))];
        return [...early, ...(own ? [own] : []), ...parts, ...children, ...late];
      });
  return list(trace.requests.filter((request) => !request.parent_id || !known.has(request.parent_id)), 0, new Set());
}

/** How long a trace is: from 0 to its last moment; never 0. */
export function lengthOf(trace: Trace): number {
  return Math.max(1, ...trace.requests.flatMap((request) => request.moments.map((moment) => moment.ns)));
}

/** The largest part of the trace that is not made of others, in words. */
export function slowest(spans: Span[]): Span | null {
  const parts = spans.filter((span) => span.end !== null && span.kind !== 'request');
  const length = (span: Span) => (span.end ?? span.start) - span.start;
  return parts.reduce<Span | null>((most, span) => (!most || length(span) > length(most) ? span : most), null);
}
