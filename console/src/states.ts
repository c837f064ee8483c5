// SPDX-License-Identifier: Apache-2.0
// What the index of the repositories says of models: which are served, which could be, and which have a problem.
import type { IndexEntry } from './api.ts';

export interface Model {
  name: string;
  versions: IndexEntry[];
}

/** The reasons of versions that are not served because nobody wants them now; with models on demand that is most. */
const UNLOADED = 'unloaded';
const ON_DEMAND = 'not loaded: the first request loads it';

/** Whether a version is not loaded, and nothing is wrong with it. */
export function isIdle(entry: IndexEntry): boolean {
  return !entry.state || entry.reason === UNLOADED || entry.reason === ON_DEMAND;
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

/** The state that matters most for somebody who looks at the list; none if the model is not loaded, and is not meant to be. */
export function stateOf(model: Model): string | undefined {
  const states = model.versions.filter((version) => !isIdle(version)).map((version) => version.state);
  for (const state of ['READY', 'LOADING', 'UNLOADING', 'UNAVAILABLE']) if (states.includes(state)) return state;
  return undefined;
}

export function reasonOf(model: Model): string {
  const reasons = model.versions.filter((version) => version.state !== 'READY' && !isIdle(version)).map((version) => version.reason ?? '');
  return [...new Set(reasons)].filter(Boolean).join('; ');
}

/** Versions that were to be served and are not. */
export function failedOf(index: IndexEntry[]): IndexEntry[] {
  return index.filter((entry) => entry.state === 'UNAVAILABLE' && entry.reason && !isIdle(entry));
}

/** Whether the index says that requests load models. It does only for models that were never loaded. */
export function saysOnDemand(index: IndexEntry[]): boolean {
  return index.some((entry) => entry.reason === ON_DEMAND);
}

/** The models that requests reach; with models on demand also those that are not loaded. */
export function servedOf(index: IndexEntry[], isOnDemand: boolean): Model[] {
  const isServed = (model: Model) => stateOf(model) === 'READY' || (isOnDemand && model.versions.every(isIdle));
  return groupByName(index).filter(isServed);
}

/** What changes when something else is loaded of a model. */
export function versionsOf(model: Model | undefined): string {
  return (model?.versions ?? []).map((version) => `${version.version ?? ''}:${version.state ?? ''}`).join(',');
}
