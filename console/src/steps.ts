// SPDX-License-Identifier: Apache-2.0
// What the steps of an ensemble take, from the statistics of their models.
import type { EnsembleStep, ModelStat } from './api.ts';
import type { Graph } from './graph.ts';
import { partsOf } from './parts.ts';

/** The mean request to the model of a step, in milliseconds. */
export interface StepTime {
  /** Waiting for an instance. */
  queue: number;
  /** Making inputs ready, running, collecting outputs. */
  compute: number;
  /** All of it. */
  total: number;
  /** Of the mean request to the ensemble; null before there was one. */
  share: number | null;
}

/** The statistics of one version; without one, or with -1, of all: rules may lead a step to any of them. */
function statsOf(stats: ModelStat[], version: string | number = -1): ModelStat[] {
  return Number(version) > 0 ? stats.filter((stat) => Number(stat.version) === Number(version)) : stats;
}

/** What a request takes in the mean; null before there was one. */
export function meanOf(stats: ModelStat[], version?: string | number): number | null {
  return partsOf(statsOf(stats, version))?.total ?? null;
}

/** One for each step, null where its model has answered no request yet, or where its statistics are not known. */
export function timesOf(steps: EnsembleStep[], models: ReadonlyMap<string, ModelStat[]>, ensembleMs: number | null): (StepTime | null)[] {
  return steps.map((step) => {
    const found = partsOf(statsOf(models.get(step.model_name) ?? [], step.model_version));
    if (!found) return null;
    const sum = (isCounted: (key: string) => boolean) => found.parts.reduce((ms, part) => ms + (isCounted(part.key) ? part.ms : 0), 0);
    return {
      queue: sum((key) => key === 'queue'),
      compute: sum((key) => key.startsWith('compute')),
      total: found.total,
      share: ensembleMs ? found.total / ensembleMs : null,
    };
  });
}

/** The step that takes the most, if that is known of each; -1 otherwise. */
export function slowest(times: (StepTime | null)[]): number {
  const totals = times.map((time) => time?.total ?? NaN);
  return totals.indexOf(Math.max(...totals));
}

/**
 * How long after the arrival of a request each node of the drawing is done, if each step takes its mean: steps wait for
 * the last of their tensors. Null behind a step whose time is not known.
 */
export function doneAt(graph: Graph, times: (StepTime | null)[]): (number | null)[] {
  let step = 0;
  const own = graph.nodes.map((node) => (node.kind === 'step' ? (times[step++]?.total ?? null) : 0));
  const done = graph.nodes.map((): number | null => 0);
  const order = graph.nodes.map((_, i) => i).sort((a, b) => (graph.nodes[a]?.column ?? 0) - (graph.nodes[b]?.column ?? 0));
  for (const node of order) {
    // NaN passes on through the largest and the sum.
    const before = graph.edges.filter((edge) => edge.to === node).map((edge) => done[edge.from] ?? NaN);
    const sum = Math.max(0, ...before) + (own[node] ?? NaN);
    done[node] = Number.isNaN(sum) ? null : sum;
  }
  return done;
}
