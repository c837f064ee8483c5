// SPDX-License-Identifier: Apache-2.0
// The responses of a decoupled model to one request, in the order in which they come.
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refusal, send, textOf, textOfError } from './api.ts';
import { readEvents } from './events.ts';
import { counted, milliseconds, number } from './format.ts';
import { Notice, Table, explain } from './ui.tsx';

export interface StreamedResponse {
  /** From 1. */
  position: number;
  /** Since the request was sent. */
  ms: number;
  /** What the model gave, or nothing if `error` says why it did not. */
  outputs: Record<string, unknown>;
  error: string;
}
interface State {
  kept: StreamedResponse[];
  count: number;
  ms: number;
  end: '' | 'complete' | 'stopped';
  refusal: string;
}

/** The rest is counted, and not shown. */
const MOST_KEPT = 200;
const MOST_CHARACTERS = 2000;
const NOTHING: State = { kept: [], count: 0, ms: 0, end: '', refusal: '' };
const OF_THE_SERVER = new Set(['model_name', 'model_version', 'id']);

/** The outputs of an event's JSON, or its error. */
export function readResponse(data: string): { outputs: Record<string, unknown>; error: string } {
  try {
    const value = JSON.parse(data) as Record<string, unknown>;
    if (typeof value['error'] === 'string') return { outputs: {}, error: value['error'] };
    return { outputs: Object.fromEntries(Object.entries(value).filter(([name]) => !OF_THE_SERVER.has(name))), error: '' };
  } catch (error) {
    return { outputs: {}, error: `this is not JSON: ${textOf(error)}` };
  }
}

export function useStream() {
  const [state, setState] = useState(NOTHING);
  const [isOpen, setOpen] = useState(false);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const start = async (path: string, body: unknown) => {
    const control = new AbortController();
    abort.current = control;
    setOpen(true);
    setState(NOTHING);
    const began = performance.now();
    const passed = () => performance.now() - began;
    try {
      const reply = await send(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
        signal: control.signal,
      });
      if (!reply.ok) throw new Refusal(reply.status, textOfError(await reply.text(), reply.status));
      await readEvents(reply, (data) =>
        setState((old) => {
          const response = { ...readResponse(data), position: old.count + 1, ms: passed() };
          return { ...old, count: old.count + 1, ms: response.ms, kept: old.count < MOST_KEPT ? [...old.kept, response] : old.kept };
        }),
      );
      setState((old) => ({ ...old, end: 'complete', ms: passed() }));
    } catch (error) {
      if (control.signal.aborted) setState((old) => ({ ...old, end: 'stopped', ms: passed() }));
      else setState((old) => ({ ...old, refusal: explain(error) }));
    }
    setOpen(false);
  };
  return { state, isOpen, start, stop: () => abort.current?.abort() };
}

function textOfOutput(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)} …` : text;
}

export function Responses({ stream }: { stream: ReturnType<typeof useStream> }) {
  const { kept, count, ms, end, refusal } = stream.state;
  return (
    <>
      <div role="status">
        {refusal && <Notice kind="error">{refusal}</Notice>}
        {(stream.isOpen || end) && (
          <p>
            {counted(count, 'response', 'responses')} {end ? 'in' : 'so far,'} {end ? milliseconds(ms) : 'the stream is open'}
            {end === 'stopped' && ' until you stopped it'}
            {end === 'complete' && count === 0 && ': the model ended the request without a response'}.
          </p>
        )}
      </div>
      {kept.length > 0 && (
        <Table label="Responses" head={['Response', 'After', 'Outputs']} isPlain>
          {kept.map((response) => (
            <tr key={response.position}>
              <th scope="row">{response.position}</th>
              <td class="number nowrap">{milliseconds(response.ms)}</td>
              <td>
                {response.error && <span class="reason">{response.error}</span>}
                {Object.entries(response.outputs).map(([name, value]) => (
                  <div key={name} class="path">
                    <span class="muted">{name}</span> {textOfOutput(value)}
                  </div>
                ))}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {count > kept.length && <p class="muted">{`${number(count - kept.length)} more were counted and are not shown.`}</p>}
    </>
  );
}
