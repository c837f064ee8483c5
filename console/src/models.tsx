// SPDX-License-Identifier: Apache-2.0
// The list of models.
import { useState } from 'preact/hooks';
import { ask, modelPath, post } from './api.ts';
import type { IndexEntry, ModelConfig, ModelLoads, ModelStat } from './api.ts';
import { milliseconds, number } from './format.ts';
import { Pending, State, Table, linkTo, useLoaded } from './ui.tsx';

const MOST_ROWS = 50;
/** The server reads its repositories for the index, which may be far away. */
export const INDEX_EVERY_MS = 15_000;

export function readIndex(signal?: AbortSignal): Promise<IndexEntry[]> {
  return post<IndexEntry[]>('/v2/repository/index', {}, signal);
}

interface Model {
  name: string;
  versions: IndexEntry[];
}

/** The versions of each model together. */
export function groupByName(index: IndexEntry[]): Model[] {
  const models = new Map<string, Model>();
  for (const entry of index) {
    const model = models.get(entry.name) ?? { name: entry.name, versions: [] };
    model.versions.push(entry);
    models.set(entry.name, model);
  }
  return [...models.values()].sort((a, b) => a.name.localeCompare(b.name));
}

/** The state that matters most for somebody who looks at the list; none if the model was unloaded, or never loaded. */
export function stateOf(model: Model): string | undefined {
  const states = model.versions.filter((version) => version.reason !== 'unloaded').map((version) => version.state);
  for (const state of ['READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE']) if (states.includes(state)) return state;
  return undefined;
}

export function reasonOf(model: Model): string {
  const reasons = model.versions.filter((version) => version.state !== 'READY').map((version) => version.reason ?? '');
  return [...new Set(reasons)].filter((reason) => reason && reason !== 'unloaded').join('; ');
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
      <td>{value ? value.platform || value.backend : ''}</td>
      <td>{value ? instancesOf(value) : ''}</td>
    </>
  );
}

export function Models() {
  const index = useLoaded(readIndex, [], INDEX_EVERY_MS);
  const stats = useLoaded(
    (signal) => Promise.all([ask<{ model_stats: ModelStat[] }>('/v2/models/stats', { signal }), ask<ModelLoads>('/ui/api/models', { signal })]),
    [],
    5000,
  );
  const [wanted, setWanted] = useState('');
  const [most, setMost] = useState(MOST_ROWS);
  const models = groupByName(index.value ?? []);
  const found = models.filter((model) => model.name.toLowerCase().includes(wanted.toLowerCase()));
  const [statistics, loads] = stats.value ?? [];
  const sums = (name: string) => {
    const all = (statistics?.model_stats ?? []).filter((stat) => stat.name === name);
    const count = all.reduce((sum, stat) => sum + (stat.inference_stats.success?.count ?? 0), 0);
    const ns = all.reduce((sum, stat) => sum + (stat.inference_stats.success?.ns ?? 0), 0);
    const failed = all.reduce((sum, stat) => sum + (stat.inference_stats.fail?.count ?? 0), 0);
    const queued = (loads?.models ?? []).filter((load) => load.name === name).reduce((sum, load) => sum + load.pending, 0);
    return { count, failed, queued, mean: count ? ns / count / 1e6 : null };
  };
  return (
    <>
      <h1>Models</h1>
      <div class="bar-of-tools">
        <label class="grow">
          Name contains
          <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        </label>
        <p role="status" class="muted">
          {index.value ? `${found.length} of ${models.length} models` : ''}
        </p>
      </div>
      <Pending of={index} />
      {index.value && (
        <Table label="Models" head={['Name', 'State', 'Versions', 'Platform', 'Instances', 'Answered', 'Failed', 'Waiting', 'Mean latency']}>
          {found.slice(0, most).map((model) => {
            const state = stateOf(model);
            const sum = sums(model.name);
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
                <td class="number">{number(sum.count)}</td>
                <td class="number">{number(sum.failed)}</td>
                <td class="number">{number(sum.queued)}</td>
                <td class="number">{milliseconds(sum.mean)}</td>
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
