// SPDX-License-Identifier: Apache-2.0
// The list of models.
import { useState } from 'preact/hooks';
import { ask, modelPath, post } from './api.ts';
import type { IndexEntry, ModelConfig, ModelLoads, ModelStat } from './api.ts';
import { NOTHING, milliseconds, number } from './format.ts';
import { quantile } from './load.ts';
import { groupByName, reasonOf, stateOf } from './states.ts';
import { Notice, Pending, State, Table, linkTo, useLoaded } from './ui.tsx';

const MOST_ROWS = 50;
/** The server reads its repositories for the index, which may be far away. */
export const INDEX_EVERY_MS = 15_000;

export function readIndex(signal: AbortSignal): Promise<IndexEntry[]> {
  return post<IndexEntry[]>('/v2/repository/index', {}, { signal });
}

/** "3 on CPU, 2 on GPU" of a configuration. */
export function instancesOf(config: ModelConfig): string {
  if (config.ensemble_scheduling) return '';
  const counts = new Map<string, number>();
  for (const group of config.instance_group ?? []) {
    const kind = group.kind.replace(/^KIND_/, '');
    const each = Math.max(1, group.gpus?.length ?? 1);
    counts.set(kind, (counts.get(kind) ?? 0) + group.count * each);
  }
  return [...counts].map(([kind, count]) => `${count} on ${kind}`).join(', ');
}

function PlatformCells({ name, isReady }: { name: string; isReady: boolean }) {
  const config = useLoaded(
    (signal) => (isReady ? ask<ModelConfig>(`${modelPath(name)}/config`, { signal }) : Promise.resolve(null)),
    [name, isReady],
  );
  const value = config.value;
  return (
    <>
      <td>{value ? value.platform || value.backend : config.error ? NOTHING : ''}</td>
      <td>{value ? instancesOf(value) : config.error ? NOTHING : ''}</td>
    </>
  );
}

/** What the statistics of all versions of a model say together. */
interface Sum {
  count: number;
  failed: number;
  queued: number;
  mean: number | null;
  p99: number | null;
}
function sumsOf(stats: ModelStat[], loads: ModelLoads | undefined): Map<string, Sum> {
  const counts = new Map<string, { count: number; ns: number; failed: number; queued: number; buckets: number[] }>();
  const of = (name: string) => {
    const sum = counts.get(name) ?? { count: 0, ns: 0, failed: 0, queued: 0, buckets: [] };
    counts.set(name, sum);
    return sum;
  };
  for (const stat of stats) {
    const sum = of(stat.name);
    sum.count += stat.inference_stats.success?.count ?? 0;
    sum.ns += stat.inference_stats.success?.ns ?? 0;
    sum.failed += stat.inference_stats.fail?.count ?? 0;
  }
  for (const load of loads?.models ?? []) {
    const sum = of(load.name);
    sum.queued += load.pending;
    load.request.forEach((count, i) => (sum.buckets[i] = (sum.buckets[i] ?? 0) + count));
  }
  return new Map(
    [...counts].map(([name, { count, ns, failed, queued, buckets }]) => [
      name,
      { count, failed, queued, mean: count ? ns / count / 1e6 : null, p99: quantile(loads?.bounds_ms ?? [], buckets, 0.99) },
    ]),
  );
}

type Order = 'name' | 'count' | 'failed' | 'queued' | 'mean' | 'p99';
const COLUMNS: [Order, string][] = [
  ['count', 'Answered'],
  ['failed', 'Failed'],
  ['queued', 'Waiting'],
  ['mean', 'Mean latency'],
  ['p99', '99 %'],
];

export function Models() {
  const index = useLoaded(readIndex, [], INDEX_EVERY_MS);
  const stats = useLoaded(
    (signal) => Promise.all([ask<{ model_stats: ModelStat[] }>('/v2/models/stats', { signal }), ask<ModelLoads>('/ui/api/models', { signal })]),
    [],
    5000,
  );
  const [wanted, setWanted] = useState('');
  const [isProblem, setProblem] = useState(false);
  const [order, setOrder] = useState<Order>('name');
  const [most, setMost] = useState(MOST_ROWS);
  const models = groupByName(index.value ?? []);
  const found = models.filter((model) => model.name.toLowerCase().includes(wanted.toLowerCase()) && (!isProblem || reasonOf(model) !== ''));
  const [statistics, loads] = stats.value ?? [];
  const sums = sumsOf(statistics?.model_stats ?? [], loads);
  // None of a model that is not loaded, and of all while the statistics are not known.
  const sumOf = (name: string): Sum | undefined => sums.get(name);
  if (order !== 'name') found.sort((a, b) => (sumOf(b.name)?.[order] ?? -1) - (sumOf(a.name)?.[order] ?? -1));
  return (
    <>
      <h1>Models</h1>
      <div class="bar-of-tools">
        <label class="grow">
          Name contains
          <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={isProblem} onChange={(event) => setProblem(event.currentTarget.checked)} />
          Only those with a problem
        </label>
        <p role="status" class="muted">
          {index.value ? `${found.length} of ${models.length} models` : ''}
        </p>
      </div>
      <Pending of={index} />
      {stats.error && <Notice kind="error">{`The statistics could not be read${statistics ? ', and are from before' : ''}: ${stats.error}`}</Notice>}
      {index.value && (
        <Table
          label="Models"
          head={[
            { text: 'Name', isUsed: order === 'name', isAscending: true, onSort: () => setOrder('name') },
            'State',
            'Versions',
            'Platform',
            'Instances',
            ...COLUMNS.map(([key, text]) => ({ text, isUsed: order === key, onSort: () => setOrder(key) })),
          ]}
        >
          {found.slice(0, most).map((model) => {
            const state = stateOf(model);
            const sum = sumOf(model.name);
            const reason = reasonOf(model);
            return (
              <tr key={model.name}>
                <th scope="row">
                  <a href={linkTo('models', model.name)}>{model.name}</a>
                  {reason && <div class="reason">{reason}</div>}
                </th>
                <td>
                  <State state={state} />
                </td>
                <td>
                  {model.versions
                    .filter((version) => version.state === 'READY')
                    .map((version) => version.version)
                    .join(', ')}
                </td>
                <PlatformCells name={model.name} isReady={state === 'READY'} />
                <td class="number">{number(sum?.count)}</td>
                <td class="number">{number(sum?.failed)}</td>
                <td class="number">{number(sum?.queued)}</td>
                <td class="number">{milliseconds(sum?.mean)}</td>
                <td class="number">{milliseconds(sum?.p99)}</td>
              </tr>
            );
          })}
        </Table>
      )}
      {found.length > most && (
        <button type="button" onClick={() => setMost(most + MOST_ROWS)}>
          Show {Math.min(MOST_ROWS, found.length - most)} more
        </button>
      )}
    </>
  );
}
