// SPDX-License-Identifier: Apache-2.0
// The responses of a decoupled model to one request, in the order in which they come.
import { useEffect, useRef, useState } from 'preact/hooks';
import { BY_USER, Refusal, send, textOfError } from './api.ts';
import type { TensorMetadata } from './api.ts';
import { readEvents } from './events.ts';
import { counted, milliseconds, number } from './format.ts';
import { readResponse, textOfOutput } from './streamed.ts';
import type { StreamedOutputs } from './streamed.ts';
import { Notice, Table, explain } from './ui.tsx';

export interface StreamedResponse extends StreamedOutputs {
  /** From 1. */
  position: number;
  /** Since the request was sent. */
  ms: number;
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
const NOTHING: State = { kept: [], count: 0, ms: 0, end: '', refusal: '' };

export function useStream() {
  const [state, setState] = useState(NOTHING);
  const [isOpen, setOpen] = useState(false);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);
  const [known, setKnown] = useState<readonly TensorMetadata[]>([]);
  const start = async (path: string, body: unknown, outputs: readonly TensorMetadata[]) => {
    const control = new AbortController();
    abort.current = control;
    setOpen(true);
    setState(NOTHING);
    setKnown(outputs);
    const began = performance.now();
    const passed = () => performance.now() - began;
    try {
      const reply = await send(path, {
        ...BY_USER,
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
        signal: control.signal,
      });
      // The status of a stream is that of its first response, after which there may be others.
      const isStream = reply.headers.get('Content-Type')?.startsWith('text/event-stream');
      if (!reply.ok && !isStream) throw new Refusal(reply.status, textOfError(await reply.text(), reply.status));
      await readEvents(reply, (data) =>
        setState((old) => {
          const response = { ...readResponse(data, outputs), position: old.count + 1, ms: passed() };
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
  return { state, known, isOpen, start, stop: () => abort.current?.abort() };
}

export function Responses({ stream }: { stream: ReturnType<typeof useStream> }) {
  const { kept, count, ms, end, refusal } = stream.state;
  const typeOf = (name: string) => stream.known.find((output) => output.name === name)?.datatype;
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
                    <span class="muted">{name}</span> {textOfOutput(value, typeOf(name))}
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
