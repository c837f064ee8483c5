// SPDX-License-Identifier: Apache-2.0
// How much of its machine a server may use, and what its charts therefore show.
import { mebibytes, number } from './format.ts';
import type { Machine } from './load.ts';

export interface Scale {
  title: string;
  /** The top of the axis, if not what the values need. */
  top?: number;
  /** Of the machine as a whole; null where the server may use a part of it only, as in a container. */
  machine: ((part: number | null) => number | null) | null;
  /** What the title does not say. */
  note: string;
}

/**
 * CPUs that are busy. A line of a machine that others use, too, would say nothing of how near the server is to its own
 * limit, and would flatten the line that does. So there is none in a container.
 */
export function cpuScale({ cpus, host_cpus }: Machine): Scale {
  if (host_cpus <= cpus) {
    return { title: `CPUs in use, of ${cpus || 'all'}`, top: cpus, machine: (part) => (part === null ? null : part * host_cpus), note: '' };
  }
  return {
    title: `CPUs in use, of ${number(cpus)} that the server may use`,
    top: cpus,
    machine: null,
    note: `The machine has ${number(host_cpus)}, which are not for this server alone.`,
  };
}

/** Memory that is taken. Where it has a limit of its own, the axis reaches it. */
export function memoryScale({ memory_bytes, host_memory_bytes }: Machine): Scale {
  const limit = memory_bytes / 2 ** 20;
  if (host_memory_bytes <= memory_bytes) return { title: `Memory, of ${mebibytes(limit)}`, machine: (mib) => mib, note: '' };
  return {
    title: `Memory, of ${mebibytes(limit)} that the server may use`,
    top: limit,
    machine: null,
    note: `The machine has ${mebibytes(host_memory_bytes / 2 ** 20)}, which is not for this server alone.`,
  };
}

/** The lines of a chart: the server, and its machine where that can be compared. */
export function linesOf(scale: Scale, server: (number | null)[], machine: (number | null)[]) {
  const own = { label: 'server', color: '--c1', values: server };
  return scale.machine ? [own, { label: 'machine', color: '--c4', values: machine.map(scale.machine) }] : [own];
}
