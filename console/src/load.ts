// SPDX-License-Identifier: Apache-2.0
// The server's load over the last hour, as the charts show it: columns of numbers, null where nothing is known.

export const COLUMNS = [
  'requests',
  'errors',
  'p50_ms',
  'p99_ms',
  'queued',
  'process_cpus',
  'machine_cpu',
  'process_mib',
  'machine_mib',
] as const;
export type Column = (typeof COLUMNS)[number];
type Value = number | null;

export interface GpuColumns {
  use: Value[];
  mib: Value[];
}
export interface Machine {
  /** That the server may use. */
  cpus: number;
  /** Of the machine, of which `machine_cpu` is the busy part. */
  host_cpus: number;
  /** That the server may use. */
  memory_bytes: number;
  host_memory_bytes: number;
  gpus: { name: string; memory_bytes: number }[];
}
/** What /ui/api/history answers. */
export type History = Record<Column, Value[]> & { machine: Machine; time_s: number[]; gpus: GpuColumns[] };
/** One event of /ui/api/live. */
export type Sample = Record<Column, Value> & { time_s: number; gpus: { use: Value; mib: Value }[] };

const MOST = 3600;
/** Samples that are older than the last one by more than this are not late: somebody has set the clock of the server back. */
const MOST_LATE_S = 5;

export function emptyHistory(): History {
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, [] as Value[]])) as Record<Column, Value[]>;
  return { ...columns, machine: { cpus: 0, host_cpus: 0, memory_bytes: 0, host_memory_bytes: 0, gpus: [] }, time_s: [], gpus: [] };
}

/** The history of the same machine, without a sample. */
function begunAnew({ machine, gpus }: History): History {
  return { ...emptyHistory(), machine, gpus: gpus.map(() => ({ use: [], mib: [] })) };
}

/** The history with one more sample; the same object if it has that second already. */
export function withSample(old: History, sample: Sample): History {
  const last = old.time_s.at(-1) ?? -Infinity;
  const isSetBack = sample.time_s < last - MOST_LATE_S;
  if (sample.time_s <= last && !isSetBack) return old;
  const history = isSetBack ? begunAnew(old) : old;
  const add = <T>(values: T[], value: T) => [...values.slice(-(MOST - 1)), value];
  const next = { ...history, time_s: add(history.time_s, sample.time_s) };
  for (const name of COLUMNS) next[name] = add(history[name], sample[name]);
  next.gpus = history.gpus.map((gpu, i) => ({
    use: add(gpu.use, sample.gpus[i]?.use ?? null),
    mib: add(gpu.mib, sample.gpus[i]?.mib ?? null),
  }));
  return next;
}

/** A history whose times only rise: that since the clock of the server was last set back. */
export function inOrder(history: History): History {
  const { time_s } = history;
  let kept: number[] = [];
  let last = -Infinity;
  time_s.forEach((time, i) => {
    if (time < last - MOST_LATE_S) kept = [];
    else if (time <= last) return;
    kept.push(i);
    last = time;
  });
  if (kept.length === time_s.length) return history;
  const pick = <T>(values: T[]) => kept.flatMap((i) => values.slice(i, i + 1));
  const next = { ...history, time_s: pick(time_s) };
  for (const name of COLUMNS) next[name] = pick(history[name]);
  next.gpus = history.gpus.map((gpu) => ({ use: pick(gpu.use), mib: pick(gpu.mib) }));
  return next;
}

/** Where the last `seconds` begin in the history. */
export function startOf(history: History, seconds: number): number {
  const last = history.time_s.at(-1);
  if (last === undefined) return 0;
  const first = last - seconds;
  let low = 0;
  let high = history.time_s.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((history.time_s[middle] ?? 0) <= first) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Row {
  time_s: number;
  values: Value[];
}
/** Means over equal spans, the newest first, for whoever reads a table and not a chart. */
export function toRows(times: number[], columns: Value[][], most = 12): Row[] {
  const size = Math.max(1, Math.ceil(times.length / most));
  const rows: Row[] = [];
  for (let end = times.length; end > 0; end -= size) {
    const start = Math.max(0, end - size);
    const values = columns.map((column) => {
      const known = column.slice(start, end).filter((value): value is number => value !== null);
      return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
    });
    rows.push({ time_s: times[end - 1] ?? 0, values });
  }
  return rows;
}

/** The last value that is known. */
export function lastOf(values: Value[]): Value {
  return values.at(-1) ?? null;
}

/** The duration below which a part of all counted ones is; null without any. Values spread evenly in a bucket. */
export function quantile(bounds: number[], counts: number[], part: number): Value {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total) return null;
  const wanted = part * total;
  let below = 0;
  for (let i = 0; i < bounds.length; ++i) {
    const count = counts[i] ?? 0;
    const lower = i ? (bounds[i - 1] ?? 0) : 0;
    if (count && below + count >= wanted) {
      return lower + (Math.max(0, wanted - below) / count) * ((bounds[i] ?? 0) - lower);
    }
    below += count;
  }
  return bounds.at(-1) ?? null;
}
