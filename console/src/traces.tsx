// SPDX-License-Identifier: Apache-2.0
// The last traces, and the waterfall of one.
import { useState } from 'preact/hooks';
import { BY_USER, ask, post } from './api.ts';
import { counted, milliseconds, moment, number } from './format.ts';
import { lengthOf, slowest, spansOf } from './spans.ts';
import type { Span, Trace } from './spans.ts';
import { Code, Notice, Pending, Table, explain, linkTo, useLoaded } from './ui.tsx';

interface TraceEntry {
  id: number;
  time_ms: number;
  model: string;
  version: number;
  request_id: string;
  requests: number;
  ns: number;
}
interface TraceList {
  is_on: boolean;
  traces: TraceEntry[];
}
interface TraceSettings {
  trace_level: string[];
  trace_count?: string;
  trace_mode?: string;
  trace_file?: string;
}

const EVERY_MS = 3000;
const SOME = 20;
const FLAGS = '--trace-config triton,file=/tmp/trace.json \\\n--trace-config rate=100 \\\n--trace-config level=TIMESTAMPS\n';

function stateOf(list: TraceList, settings: TraceSettings): string {
  if (!list.is_on) return 'Traces are off at the moment.';
  const left = Number(settings.trace_count ?? -1);
  if (left === 0) return 'As many requests have been traced as the settings say.';
  return left > 0 ? `Traces are on for ${counted(left, 'more request', 'more requests')}.` : 'Traces are on.';
}

/** Says how traces are taken, and takes some where the server can. */
function TakeTraces({ list, onDone }: { list: TraceList; onDone: () => void }) {
  const settings = useLoaded((signal) => ask<TraceSettings>('/v2/trace/setting', { signal }), [], EVERY_MS);
  const [result, setResult] = useState<{ kind: 'good' | 'error'; text: string } | null>(null);
  const take = async () => {
    try {
      await post('/v2/trace/setting', { trace_level: ['TIMESTAMPS'], trace_rate: '1', trace_count: String(SOME) }, BY_USER);
      setResult({ kind: 'good', text: `the next ${SOME} requests are traced. They appear here once they are answered.` });
    } catch (error) {
      setResult({ kind: 'error', text: explain(error) });
    }
    settings.reload();
    onDone();
  };
  const value = settings.value;
  if (!value) return <Pending of={settings} />;
  if (!value.trace_file && value.trace_mode !== 'opentelemetry') {
    return (
      <>
        <Notice kind="info">This server takes no traces, because it was started without a file for them.</Notice>
        <p>To have traces, start it with these flags. One request in 100 is then traced; the settings page changes that while the server runs.</p>
        <Code label="flags" text={FLAGS} />
      </>
    );
  }
  return (
    <>
      <p>
        {stateOf(list, value)} <a href={linkTo('settings')}>The settings</a> say which requests are traced; this button changes them for the whole
        server.
      </p>
      <div class="actions">
        <button type="button" onClick={() => void take()}>
          Trace the next {SOME} requests
        </button>
      </div>
      {result && <Notice kind={result.kind}>{result.text}</Notice>}
    </>
  );
}

export function Traces() {
  const list = useLoaded((signal) => ask<TraceList>('/ui/api/traces', { signal }), [], EVERY_MS);
  const [model, setModel] = useState('');
  const [isByTime, setByTime] = useState(false);
  const traces = list.value?.traces ?? [];
  const models = [...new Set(traces.map((trace) => trace.model))].filter(Boolean).sort();
  const found = traces.filter((trace) => !model || trace.model === model);
  if (isByTime) found.sort((a, b) => b.ns - a.ns);
  return (
    <>
      <h1>Traces</h1>
      <p class="muted">Single requests, and what happened to them when. The server keeps the last 100 for this page.</p>
      {list.value && <TakeTraces list={list.value} onDone={list.reload} />}
      <Pending of={list} />
      {traces.length > 0 && (
        <>
          <div class="bar-of-tools">
            <label>
              Model
              <select value={model} onChange={(event) => setModel(event.currentTarget.value)}>
                <option value="">All</option>
                {models.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
            <label>
              Order
              <select value={isByTime ? 'time' : 'new'} onChange={(event) => setByTime(event.currentTarget.value === 'time')}>
                <option value="new">Newest first</option>
                <option value="time">Longest first</option>
              </select>
            </label>
            <p role="status" class="muted">
              {found.length} of {traces.length} traces
            </p>
          </div>
          <Table label="Traces" head={['Trace', 'Model', 'Duration', 'When', 'Requests in it', 'Request id']} isPlain>
            {found.map((trace) => (
              <tr key={trace.id}>
                <th scope="row">
                  <a href={linkTo('traces', String(trace.id))}>{`Trace ${trace.id}`}</a>
                </th>
                <td>{trace.model ? `${trace.model} ${trace.version}` : '–'}</td>
                <td class="number">{milliseconds(trace.ns / 1e6)}</td>
                <td>{moment(trace.time_ms)}</td>
                <td class="number">{number(trace.requests)}</td>
                <td>{trace.request_id}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
      {list.value && traces.length === 0 && list.value.is_on && <Notice kind="info">No request has been traced yet.</Notice>}
    </>
  );
}

function Row({ span, total }: { span: Span; total: number }) {
  const end = span.end ?? span.start;
  const percent = (ns: number) => (ns / total) * 100;
  return (
    <tr>
      <th scope="row" class={`depth-${Math.min(span.depth, 6)} ${span.kind}`}>
        {span.model ? <a href={linkTo('models', span.model)}>{span.label}</a> : span.label}
      </th>
      <td class="number">{milliseconds(span.start / 1e6)}</td>
      <td class="number">{span.end === null ? '' : milliseconds((end - span.start) / 1e6)}</td>
      <td class="bar" aria-hidden="true">
        <svg viewBox="0 0 100 10" preserveAspectRatio="none" focusable="false">
          <rect class={`span-${span.kind}`} x={Math.min(percent(span.start), 99.6)} width={Math.max(0.4, percent(end - span.start))} height="10" />
        </svg>
      </td>
    </tr>
  );
}

const LEGEND = [
  ['request', 'a request as a whole'],
  ['queue', 'waiting'],
  ['compute', 'executing'],
  ['transfer', 'receiving and sending'],
  ['other', 'other'],
] as const;

export function TracePage({ id }: { id: string }) {
  const loaded = useLoaded((signal) => ask<Trace>(`/ui/api/traces/${encodeURIComponent(id)}`, { signal }), [id]);
  const trace = loaded.value;
  const spans = trace ? spansOf(trace) : [];
  const total = trace ? lengthOf(trace) : 1;
  const longest = slowest(spans);
  const kinds = new Set(spans.map((span) => span.kind));
  return (
    <>
      <p>
        <a href={linkTo('traces')}>All traces</a>
      </p>
      <h1>Trace {id}</h1>
      <Pending of={loaded} />
      {trace && (
        <>
          <p>
            {moment(trace.time_ms)}: {milliseconds(total / 1e6)} from the first moment to the last.
            {longest && ` The longest part: ${longest.label}, ${milliseconds(((longest.end ?? 0) - longest.start) / 1e6)}.`}
          </p>
          {trace.is_cut && <Notice kind="info">More was recorded than this page keeps; the server's file of traces, or its collector, has all of it.</Notice>}
          <Table label="Waterfall" head={['What', 'Begins after', 'Takes', 'When']} isPlain>
            {spans.map((span, i) => (
              <Row key={i} span={span} total={total} />
            ))}
          </Table>
          <ul class="legend" aria-label="Colours">
            {LEGEND.filter(([kind]) => kinds.has(kind)).map(([kind, words]) => (
              <li key={kind}>
                <svg viewBox="0 0 10 10" aria-hidden="true" focusable="false">
                  <rect class={`span-${kind}`} width="10" height="10" rx="2" />
                </svg>{' '}
                {words}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
