// SPDX-License-Identifier: Apache-2.0
// The settings of the log and of traces that may be changed while the server runs.
import { useEffect, useState } from 'preact/hooks';
import { BY_USER, ask, post } from './api.ts';
import { Notice, Pending, explain, useLoaded } from './ui.tsx';

interface LogSettings {
  log_file: string;
  log_info: boolean;
  log_warning: boolean;
  log_error: boolean;
  log_verbose_level: number;
  log_format: string;
}
interface TraceSettings {
  trace_level: string[];
  trace_rate: string;
  trace_count: string;
  log_frequency: string;
  trace_file?: string;
  trace_mode?: string;
}
type Result = { kind: 'good' | 'error'; text: string } | null;

function useSaved<T>(path: string) {
  const loaded = useLoaded((signal) => ask<T>(path, { signal }), [path]);
  const [draft, setDraft] = useState<T | null>(null);
  const [result, setResult] = useState<Result>(null);
  useEffect(() => setDraft(loaded.value), [loaded.value]);
  const save = async (change: Partial<T>) => {
    try {
      setDraft(await post<T>(path, change, BY_USER));
      setResult({ kind: 'good', text: 'the server uses these settings from now on, until it ends.' });
    } catch (error) {
      setResult({ kind: 'error', text: explain(error) });
    }
  };
  return { loaded, draft, setDraft, result, save };
}

const KINDS = [
  ['log_info', 'Information'],
  ['log_warning', 'Warnings'],
  ['log_error', 'Errors'],
] as const;

function LogForm() {
  const { loaded, draft, setDraft, result, save } = useSaved<LogSettings>('/v2/logging');
  return (
    <section class="card" aria-labelledby="log">
      <h2 id="log">Log</h2>
      <Pending of={loaded} />
      {draft && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const { log_file: _file, ...change } = draft;
            void save(change);
          }}
        >
          <p>{draft.log_file ? `Written to ${draft.log_file}.` : 'Written to standard error.'}</p>
          {KINDS.map(([name, label]) => (
            <label class="check" key={name}>
              <input type="checkbox" checked={draft[name]} onChange={(event) => setDraft({ ...draft, [name]: event.currentTarget.checked })} />
              {label}
            </label>
          ))}
          <label>
            Verbose level (0: none)
            <input
              type="number"
              min="0"
              max="9"
              value={draft.log_verbose_level}
              onInput={(event) => setDraft({ ...draft, log_verbose_level: event.currentTarget.valueAsNumber || 0 })}
            />
          </label>
          <div class="actions">
            <button type="submit">Change the log</button>
          </div>
        </form>
      )}
      {result && <Notice kind={result.kind}>{result.text}</Notice>}
    </section>
  );
}

/** Where traces go: a collector needs no file. */
function destinationOf(settings: TraceSettings): string {
  if (settings.trace_mode === 'opentelemetry') return 'Sent to a collector (OpenTelemetry).';
  return settings.trace_file ? `Written to ${settings.trace_file}.` : 'The server was started without a file for traces (--trace-config).';
}

const LEVELS = ['TIMESTAMPS', 'TENSORS'];
const NUMBERS = [
  ['trace_rate', 'One trace for this many requests'],
  ['trace_count', 'Traces that are left to take (-1: any number)'],
  ['log_frequency', 'Traces in each file (0: one file)'],
] as const;

function TraceForm() {
  const { loaded, draft, setDraft, result, save } = useSaved<TraceSettings>('/v2/trace/setting');
  const levels = draft?.trace_level ?? [];
  const toggle = (level: string, isOn: boolean) => {
    if (!draft) return;
    const others = levels.filter((one) => one !== level && one !== 'OFF');
    const next = isOn ? [...others, level] : others;
    setDraft({ ...draft, trace_level: next.length ? next : ['OFF'] });
  };
  return (
    <section class="card" aria-labelledby="traces">
      <h2 id="traces">Traces</h2>
      <Pending of={loaded} />
      {draft && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const { trace_level, trace_rate, trace_count, log_frequency } = draft;
            void save({ trace_level, trace_rate, trace_count, log_frequency });
          }}
        >
          <p>{destinationOf(draft)}</p>
          {LEVELS.map((level) => (
            <label class="check" key={level}>
              <input type="checkbox" checked={levels.includes(level)} onChange={(event) => toggle(level, event.currentTarget.checked)} />
              {level === 'TENSORS' ? 'Tensors' : 'Times'}
            </label>
          ))}
          {NUMBERS.filter(([name]) => draft[name] !== undefined).map(([name, label]) => (
            <label key={name}>
              {label}
              <input type="number" value={draft[name]} onInput={(event) => setDraft({ ...draft, [name]: event.currentTarget.value })} />
            </label>
          ))}
          <div class="actions">
            <button type="submit">Change traces</button>
          </div>
        </form>
      )}
      {result && <Notice kind={result.kind}>{result.text}</Notice>}
    </section>
  );
}

export function Settings() {
  return (
    <>
      <h1>Settings</h1>
      <p class="muted">Changes last until the server ends. Each leaves a line in the log that says who made it.</p>
      <div class="columns">
        <LogForm />
        <TraceForm />
      </div>
    </>
  );
}
