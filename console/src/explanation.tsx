// SPDX-License-Identifier: Apache-2.0
// Where each value of a model's configuration comes from.
import { useState } from 'preact/hooks';
import { ask } from './api.ts';
import { Notice, Pending, Table, useChange, useLoaded } from './ui.tsx';

interface Value {
  field: string;
  value: string;
  from: string;
  /** In the configuration's file, or 0. */
  line: number;
  /** What the file says, if something has replaced it. */
  written: string;
}
interface Explained {
  config: string;
  is_changed: boolean;
  values: Value[];
}

/** What is loaded may be another one with each `turn`. */
export function Explanation({ name, turn }: { name: string; turn: string }) {
  const loaded = useLoaded((signal) => ask<Explained>(`/ui/api/models/${encodeURIComponent(name)}/explanation`, { signal }), [name]);
  useChange(turn, loaded.reload);
  const [source, setSource] = useState('');
  const value = loaded.value;
  const sources = [...new Set((value?.values ?? []).map((one) => one.from))];
  const values = (value?.values ?? []).filter((one) => !source || one.from === source);
  return (
    <>
      <Pending of={loaded} />
      {value && (
        <>
          {value.is_changed && (
            <Notice kind="info">
              The files of the model say something else now than what it was loaded with: they were changed since, or the request that loaded it
              brought a configuration. Reload the model to have what they say.
            </Notice>
          )}
          <p>
            Its file: <span class="path">{value.config}</span>
          </p>
          <label class="chosen">
            Values from
            <select value={source} onChange={(event) => setSource(event.currentTarget.value)}>
              <option value="">Everywhere</option>
              {sources.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          <Table label={`Where the values of ${name} come from`} head={['Field', 'Value', 'From']} isPlain>
            {values.map((one) => (
              <tr key={one.field}>
                <th scope="row" class="path">
                  {one.field}
                </th>
                <td class="path">{one.value}</td>
                <td>
                  {one.from}
                  {one.line > 0 && !one.written && `, line ${one.line}`}
                  {one.written && <span class="muted">{` (${one.line ? `line ${one.line} of the file` : 'the file'} says ${one.written})`}</span>}
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </>
  );
}
