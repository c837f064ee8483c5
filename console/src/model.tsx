// SPDX-License-Identifier: Apache-2.0
// The page of one model.
import { useRef, useState } from 'preact/hooks';
import { BY_USER, ask, askText, modelPath, post } from './api.ts';
import type { ModelConfig, ModelLoad, ModelLoads, ModelMetadata, ModelStat, TensorMetadata } from './api.ts';
import { milliseconds, moment, number, shape } from './format.ts';
import { Ensemble } from './ensemble.tsx';
import { Explanation } from './explanation.tsx';
import { indented } from './indent.ts';
import { quantile } from './load.ts';
import { INDEX_EVERY_MS, instancesOf, readIndex } from './models.tsx';
import { Sequences } from './sequences.tsx';
import { groupByName, reasonOf, saysOnDemand, servedOf, stateOf, versionsOf } from './states.ts';
import { WhereTimeGoes } from './timing.tsx';
import { Bars, Code, Confirm, Notice, Pending, State, Table, explain, linkTo, useChange, useLoaded } from './ui.tsx';

type Verb = 'load' | 'unload' | 'reload';
const QUESTIONS: Record<Verb, string> = {
  load: 'The server reads the model from its repository, and serves it once it is loaded.',
  reload: 'The server reads the model from its repository again. The versions that it serves now go on until the new ones are ready.',
  unload: 'Requests that have begun are finished. New ones are refused until the model is loaded again.',
};

/** Carries out a request of the repository extension; what came of it is in words. */
function Actions({ name, isLoaded, isServed, onDone }: { name: string; isLoaded: boolean; isServed: boolean; onDone: () => void }) {
  const [asked, setAsked] = useState<Verb | null>(null);
  const [busy, setBusy] = useState<Verb | null>(null);
  const [result, setResult] = useState<{ kind: 'good' | 'error'; text: string } | null>(null);
  const perform = async (verb: Verb) => {
    setAsked(null);
    setBusy(verb);
    setResult(null);
    const start = performance.now();
    try {
      await post(`/v2/repository/models/${encodeURIComponent(name)}/${verb === 'unload' ? 'unload' : 'load'}`, {}, BY_USER);
      const time = milliseconds(performance.now() - start);
      setResult({ kind: 'good', text: `${name} was ${verb}ed in ${time}.` });
    } catch (error) {
      setResult({ kind: 'error', text: explain(error) });
    }
    setBusy(null);
    onDone();
  };
  const verbs: Verb[] = isLoaded ? ['reload', 'unload'] : ['load'];
  return (
    <>
      <div class="actions">
        {verbs.map((verb) => (
          <button type="button" key={verb} aria-disabled={busy !== null} onClick={() => busy === null && setAsked(verb)}>
            {verb[0]?.toUpperCase() + verb.slice(1)}
          </button>
        ))}
        {isServed && (
          <a class="button primary" href={linkTo('try', name)}>
            Try it
          </a>
        )}
      </div>
      {busy && <Notice kind="info">{`The server ${busy}s ${name}…`}</Notice>}
      {result && <Notice kind={result.kind}>{result.text}</Notice>}
      {asked && (
        <Confirm
          title={`${asked[0]?.toUpperCase()}${asked.slice(1)} ${name}?`}
          verb={`${asked[0]?.toUpperCase()}${asked.slice(1)}`}
          onYes={() => void perform(asked)}
          onNo={() => setAsked(null)}
        >
          <p>{QUESTIONS[asked]}</p>
        </Confirm>
      )}
    </>
  );
}

function Tensors({ label, tensors, config }: { label: string; tensors: TensorMetadata[]; config: ModelConfig | null }) {
  const isOptional = (name: string) => config?.input?.find((input) => input.name === name)?.optional;
  return (
    <div>
      <h2>{label}</h2>
      <Table label={`${label} of the model`} head={['Name', 'Type', 'Shape']} isPlain>
        {tensors.map((tensor) => (
          <tr key={tensor.name}>
            <th scope="row">
              {tensor.name}
              {isOptional(tensor.name) && <span class="muted"> (optional)</span>}
            </th>
            <td>{tensor.datatype}</td>
            <td>{shape(tensor.shape)}</td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

const STAT_NAMES: [string, string][] = [
  ['success', 'answered'],
  ['fail', 'failed'],
  ['queue', 'waited for an instance'],
  ['compute_input', 'inputs were made ready'],
  ['compute_infer', 'the model ran'],
  ['compute_output', 'outputs were collected'],
  ['cache_hit', 'found in the cache'],
  ['cache_miss', 'not found in the cache'],
];

function Statistics({ stat }: { stat: ModelStat }) {
  const rows = STAT_NAMES.filter(([key]) => (stat.inference_stats[key]?.count ?? 0) > 0 || key === 'success');
  return (
    <section aria-label={`Statistics of version ${stat.version}`}>
      <h3>Version {stat.version}</h3>
      <p>
        {number(stat.inference_count)} inferences in {number(stat.execution_count)} executions
        {stat.execution_count > 0 && ` (${number(stat.inference_count / stat.execution_count)} each)`}; the last one: {moment(stat.last_inference)}.
      </p>
      <Table label={`Durations of version ${stat.version}`} head={['What', 'Times', 'Mean']} isPlain>
        {rows.map(([key, words]) => {
          const duration = stat.inference_stats[key] ?? { count: 0, ns: 0 };
          return (
            <tr key={key}>
              <th scope="row">{words}</th>
              <td class="number">{number(duration.count)}</td>
              <td class="number">{milliseconds(duration.count ? duration.ns / duration.count / 1e6 : null)}</td>
            </tr>
          );
        })}
      </Table>
    </section>
  );
}

const CLOSED_WORDS: Record<string, string> = {
  full: 'no further request fitted',
  preferred: 'a preferred size was reached',
  delay: 'the oldest request had waited its delay',
  incompatible: 'the next request did not fit to the others',
  eager: 'an instance was free, and no delay is set',
};

const sumOf = (counts: Record<string, number>) => Object.values(counts).reduce((sum, count) => sum + count, 0);

function Reasons({ title, counts, words }: { title: string; counts: Record<string, number>; words?: Record<string, string> }) {
  if (!sumOf(counts)) return null;
  const rows = Object.entries(counts).filter(([, count]) => count > 0);
  return (
    <div class="card">
      <h4>{title}</h4>
      <Bars label={title} rows={rows.map(([name, count]) => ({ name: words?.[name] ?? name.toLowerCase(), value: count, text: number(count) }))} />
    </div>
  );
}

/** Buckets of durations as bars, without those that are empty at both ends. */
function Durations({ title, bounds, counts }: { title: string; bounds: number[]; counts: number[] }) {
  const first = counts.findIndex((count) => count > 0);
  if (first < 0) return null;
  const last = counts.findLastIndex((count) => count > 0);
  const rows = counts.slice(first, last + 1).map((count, i) => {
    const bound = bounds[first + i];
    return { name: bound === undefined ? 'more' : `≤ ${milliseconds(bound)}`, value: count, text: number(count) };
  });
  return (
    <div class="card">
      <h4>{title}</h4>
      <p class="muted">
        p50 {milliseconds(quantile(bounds, counts, 0.5))}, p90 {milliseconds(quantile(bounds, counts, 0.9))}, p99{' '}
        {milliseconds(quantile(bounds, counts, 0.99))}
      </p>
      <Bars label={title} rows={rows} />
    </div>
  );
}

function Load({ load, bounds, stat }: { load: ModelLoad; bounds: number[]; stat: ModelStat | undefined }) {
  const batches = (stat?.batch_stats ?? []).filter((batch) => batch.compute_infer.count > 0);
  return (
    <div class="charts">
      <Durations title="Time of requests" bounds={bounds} counts={load.request} />
      <Durations title="Time in the queue" bounds={bounds} counts={load.queue} />
      <Durations title="Time of execution" bounds={bounds} counts={load.compute} />
      {batches.length > 0 && (
        <div class="card">
          <h4>Sizes of batches</h4>
          <Bars
            label="Executions by size of their batch"
            rows={batches.map((batch) => ({
              name: String(batch.batch_size),
              value: batch.compute_infer.count,
              text: `${number(batch.compute_infer.count)} × ${milliseconds(batch.compute_infer.ns / batch.compute_infer.count / 1e6)}`,
            }))}
          />
        </div>
      )}
      <Reasons title="Why batches were closed" counts={load.batches_closed} words={CLOSED_WORDS} />
      <Reasons title="Why requests failed" counts={load.failures} />
      <Reasons title="Why requests were refused" counts={load.refusals} />
    </div>
  );
}

/** All that is known of the version that requests reach by default. Each `turn` may have another one. */
function Details({ name, turn }: { name: string; turn: string }) {
  const [isExplained, setExplained] = useState(false);
  const metadata = useLoaded((signal) => ask<ModelMetadata>(modelPath(name), { signal }), [name]);
  const config = useLoaded(
    async (signal) => {
      const text = await askText(`${modelPath(name)}/config`, { signal });
      return { text, read: JSON.parse(text) as ModelConfig };
    },
    [name],
  );
  const stats = useLoaded(
    (signal) =>
      Promise.all([
        ask<{ model_stats: ModelStat[] }>(`${modelPath(name)}/stats`, { signal }),
        ask<ModelLoads>(`/ui/api/models/${encodeURIComponent(name)}`, { signal }),
      ]),
    [name],
    5000,
  );
  // What is read again stays until the answer is there, so that nothing closes that is open.
  useChange(turn, () => [metadata, config, stats].forEach((loaded) => loaded.reload()));
  const [statistics, loads] = stats.value ?? [];
  const meta = metadata.value;
  const conf = config.value?.read ?? null;
  return (
    <>
      <Pending of={metadata} />
      {meta && (
        <>
          <dl class="facts">
            <dt>Platform</dt>
            <dd>{meta.platform || conf?.backend || '–'}</dd>
            <dt>Versions</dt>
            <dd>{meta.versions.join(', ')}</dd>
            {conf && instancesOf(conf) && (
              <>
                <dt>Instances</dt>
                <dd>{instancesOf(conf)}</dd>
              </>
            )}
            {conf && (
              <>
                <dt>Batches</dt>
                <dd>
                  {conf.max_batch_size ? `up to ${conf.max_batch_size}` : 'none'}
                  {conf.dynamic_batching ? ', put together by the server' : ''}
                  {conf.sequence_batching ? ', of sequences' : ''}
                </dd>
              </>
            )}
          </dl>
          <p class="muted">
            In a shape, -1 stands for any number{conf?.max_batch_size ? '; the first number is how many examples a request has' : ''}.
          </p>
          <div class="columns">
            <Tensors label="Inputs" tensors={meta.inputs} config={conf} />
            <Tensors label="Outputs" tensors={meta.outputs} config={conf} />
          </div>
        </>
      )}
      {conf?.ensemble_scheduling && <Ensemble config={conf} stats={statistics?.model_stats ?? []} />}
      {conf?.sequence_batching && <Sequences name={name} />}
      {statistics && <WhereTimeGoes stats={statistics.model_stats} steps={conf?.ensemble_scheduling?.step.map((step) => step.model_name) ?? []} />}
      <h2>Statistics</h2>
      <Pending of={stats} />
      {(statistics?.model_stats ?? []).map((stat) => {
        const load = loads?.models.find((entry) => entry.version === stat.version);
        return (
          <div key={stat.version}>
            <Statistics stat={stat} />
            {load && loads && <Load load={load} bounds={loads.bounds_ms} stat={stat} />}
          </div>
        );
      })}
      <h2>Configuration</h2>
      <p class="muted">As it is in force: what the file leaves out is filled in by the backend and by defaults.</p>
      <Pending of={config} />
      {conf && (
        <details onToggle={(event) => event.currentTarget.open && setExplained(true)}>
          <summary>Show where each value comes from</summary>
          {isExplained && <Explanation name={name} turn={turn} />}
        </details>
      )}
      {conf && (
        <details>
          <summary>Show the configuration</summary>
          <Code label="configuration" text={indented(config.value?.text ?? '')} />
        </details>
      )}
    </>
  );
}

export function ModelPage({ name }: { name: string }) {
  // What was read before a change is not of the model that is loaded now.
  const changes = useRef(0);
  const index = useLoaded(
    async (signal) => {
      const after = changes.current;
      return { entries: await readIndex(signal), after };
    },
    [name],
    INDEX_EVERY_MS,
  );
  const entries = index.value?.entries ?? [];
  const model = groupByName(entries).find((entry) => entry.name === name);
  const state = model && stateOf(model);
  const reason = model ? reasonOf(model) : '';
  const isServed = model !== undefined && servedOf(model.versions, saysOnDemand(entries)).length > 0;
  const change = () => {
    changes.current += 1;
    index.reload();
  };
  return (
    <>
      <p>
        <a href={linkTo('models')}>All models</a>
      </p>
      <h1>
        {name} {model && !index.error && <State state={state} />}
      </h1>
      <Pending of={index} />
      {index.value && !model && <Notice kind="error">There is no model of this name in the repositories, or this key may not see it.</Notice>}
      {isServed && state === undefined && <Notice kind="info">The first request loads this model.</Notice>}
      {reason && <Notice kind={state === 'READY' ? 'info' : 'error'}>{reason}</Notice>}
      {model && (
        <p>
          <a href={linkTo('logs', name)}>What the log says of {name}</a>
        </p>
      )}
      {model && <Actions name={name} isLoaded={state === 'READY'} isServed={isServed} onDone={change} />}
      {state === 'READY' && <Details name={name} turn={`${index.value?.after} ${versionsOf(model)}`} />}
    </>
  );
}
