// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuScale, linesOf, memoryScale } from './machine.ts';

const GIB = 2 ** 30;
const whole = { cpus: 4, host_cpus: 4, memory_bytes: 8 * GIB, host_memory_bytes: 8 * GIB, gpus: [] };
const container = { cpus: 2, host_cpus: 64, memory_bytes: GIB / 2, host_memory_bytes: 256 * GIB, gpus: [] };

test('a server that has a machine for itself is shown beside all of it', () => {
  const [cpus, memory] = [cpuScale(whole), memoryScale(whole)];
  assert.deepEqual([cpus.title, cpus.top, cpus.note], ['CPUs in use, of 4', 4, '']);
  assert.deepEqual([memory.title, memory.top, memory.note], ['Memory, of 8 GiB', undefined, '']);
  assert.deepEqual(linesOf(cpus, [1, null], [0.5, null]).map((line) => [line.label, line.values]), [['server', [1, null]], ['machine', [2, null]]]);
});

test('in a container it is shown by how near it is to its limit', () => {
  const [cpus, memory] = [cpuScale(container), memoryScale(container)];
  assert.deepEqual([cpus.title, cpus.top], ['CPUs in use, of 2 that the server may use', 2]);
  assert.deepEqual([memory.title, memory.top], ['Memory, of 512 MiB that the server may use', 512]);
  assert.match(cpus.note, /has 64/);
  assert.match(memory.note, /has 256 GiB/);
  for (const scale of [cpus, memory]) assert.deepEqual(linesOf(scale, [1], [0.9]).map((line) => line.label), ['server']);
});

test('one limit may be the container’s and the other the machine’s', () => {
  const mixed = { ...whole, memory_bytes: GIB };
  assert.equal(linesOf(cpuScale(mixed), [1], [0.25])[1]?.values[0], 1);
  assert.equal(linesOf(memoryScale(mixed), [1], [5000]).length, 1);
});
