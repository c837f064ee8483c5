// SPDX-License-Identifier: Apache-2.0
// The sequences that a model's sequence batcher holds at the moment.
import { ask } from './api.ts';
import { counted, milliseconds, number } from './format.ts';
import { Pending, Table, useLoaded } from './ui.tsx';

interface Sequence {
  id: string;
  instance: number;
  position: number;
  waiting: number;
  executing: boolean;
  closed: boolean;
  idle_ns: number;
}
interface Reading {
  version: string;
  strategy: 'direct' | 'oldest';
  slots_per_instance: number;
  used_slots: number;
  free_slots: number;
  idle_limit_ns: number;
  backlog_sequences: number;
  backlog_requests: number;
  running: Sequence[];
  backlog: Sequence[];
}

const EVERY_MS = 2000;

function stateOf(sequence: Sequence): string {
  const parts: string[] = [];
  if (sequence.executing) parts.push('is executed');
  if (sequence.waiting) parts.push(`${number(sequence.waiting)} waiting`);
  if (!parts.length) parts.push(sequence.idle_ns ? `idle for ${milliseconds(sequence.idle_ns / 1e6)}` : 'idle');
  if (sequence.closed) parts.push('ends');
  return parts.join(', ');
}

function More({ shown, all }: { shown: number; all: number }) {
  return all > shown ? <p class="muted">{`The first ${number(shown)} of ${number(all)}.`}</p> : null;
}

export function Sequences({ name }: { name: string }) {
  const loaded = useLoaded((signal) => ask<Reading>(`/ui/api/models/${encodeURIComponent(name)}/sequences`, { signal }), [name], EVERY_MS);
  const value = loaded.value;
  return (
    <section aria-labelledby="sequences">
      <h2 id="sequences">Sequences</h2>
      <Pending of={loaded} />
      {value && (
        <>
          <p>
            Strategy: {value.strategy === 'direct' ? 'Direct' : 'Oldest'}. <strong>{number(value.used_slots)}</strong> of{' '}
            {number(value.used_slots + value.free_slots)} slots of version {value.version} are in use ({number(value.slots_per_instance)} for each instance).{' '}
            {value.backlog_sequences
              ? `${counted(value.backlog_sequences, 'sequence waits', 'sequences wait')} for a slot, with ${counted(value.backlog_requests, 'request', 'requests')}.`
              : 'No sequence waits for a slot.'}{' '}
            A sequence ends when it has been idle for {milliseconds(value.idle_limit_ns / 1e6)}.
          </p>
          {value.running.length > 0 && (
            <Table label="Slots in use" head={['Correlation id', 'Instance', 'Slot', 'State']} isPlain>
              {value.running.map((one) => (
                <tr key={`${one.instance}/${one.position}`}>
                  <th scope="row">{one.id}</th>
                  <td class="number">{one.instance}</td>
                  <td class="number">{one.position}</td>
                  <td>{stateOf(one)}</td>
                </tr>
              ))}
            </Table>
          )}
          <More shown={value.running.length} all={value.used_slots} />
          {value.backlog.length > 0 && (
            <Table label="Backlog: sequences that wait for a slot, the next first" head={['In the backlog', 'State']} isPlain>
              {value.backlog.map((one, i) => (
                <tr key={i}>
                  <th scope="row">{one.id}</th>
                  <td>{stateOf(one)}</td>
                </tr>
              ))}
            </Table>
          )}
          <More shown={value.backlog.length} all={value.backlog_sequences} />
        </>
      )}
    </section>
  );
}
