// SPDX-License-Identifier: Apache-2.0
// How the server is: health with reasons, and its load, live.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { health, onKey } from './api.ts';
import type { Health, IndexEntry } from './api.ts';
import { Chart } from './chart.tsx';
import { follow } from './follow.ts';
import type { Link } from './follow.ts';
import { counted, mebibytes, milliseconds, number, percent } from './format.ts';
import { emptyHistory, startOf } from './load.ts';
import type { History } from './load.ts';
import { cpuScale, linesOf, memoryScale } from './machine.ts';
import { INDEX_EVERY_MS, readIndex } from './models.tsx';
import { failedOf } from './states.ts';
import { Notice, Pending, State, linkTo, useLoaded } from './ui.tsx';

function useLoad() {
  const [history, setHistory] = useState<History>(emptyHistory);
  const [link, setLink] = useState<{ link: Link; error: string }>({ link: 'opening', error: '' });
  const [turn, setTurn] = useState(0);
  useEffect(() => onKey((event) => !event.isWanted && setTurn((n) => n + 1)), []);
  useEffect(() => {
    const abort = new AbortController();
    let isHidden = document.visibilityState === 'hidden';
    let run = new AbortController();
    const start = () => {
      run = new AbortController();
      void follow(run.signal, { change: setHistory, tell: (state, error) => setLink({ link: state, error }) });
    };
    // A page that nobody sees asks for nothing.
    const look = () => {
      const hides = document.visibilityState === 'hidden';
      if (hides === isHidden) return;
      isHidden = hides;
      run.abort();
      if (!hides) start();
    };
    document.addEventListener('visibilitychange', look, { signal: abort.signal });
    if (!isHidden) start();
    return () => {
      abort.abort();
      run.abort();
    };
  }, [turn]);
  return { history, ...link };
}

const HEALTH_EVERY_MS = 5000;
/** A server of a thousand models may have failed to load all of them. */
const MOST_FAILED = 20;

/** What the server says of itself, as it has just said it. */
function Said({ live, ready }: { live: Health; ready: Health }) {
  const problems = [...(live.checks ?? []), ...(ready.checks ?? [])].filter((check) => !check.ok);
  const unique = [...new Map(problems.map((check) => [check.name, check])).values()];
  return (
    <>
      <p class="health">
        <span class={`state ${live.live ? 'good' : 'bad'}`}>{live.live ? 'live' : 'not live'}</span>
        <span class={`state ${ready.ready ? 'good' : 'bad'}`}>{ready.ready ? 'ready' : 'not ready'}</span>
        <span>
          {ready.ready
            ? 'The server takes requests.'
            : live.live
              ? 'The server works, but load balancers should send it nothing now.'
              : 'Only a restart helps.'}
        </span>
      </p>
      {unique.map((check) => (
        <div key={check.name}>
          <h3>{check.name}</h3>
          <ul>
            {(check.problems ?? []).map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        </div>
      ))}
    </>
  );
}

function Failed({ entries }: { entries: IndexEntry[] }) {
  if (entries.length === 0) return null;
  const more = entries.length - MOST_FAILED;
  return (
    <>
      <h3>Models that could not be loaded</h3>
      <ul>
        {entries.slice(0, MOST_FAILED).map((entry) => (
          <li key={`${entry.name}/${entry.version ?? ''}`}>
            <a href={linkTo('models', entry.name)}>{entry.name}</a> <State state={entry.state} /> {entry.reason}
          </li>
        ))}
        {more > 0 && (
          <li>
            {`and ${counted(more, 'more version', 'more versions')}; `}
            <a href={linkTo('models')}>the list of models</a> has all of them
          </li>
        )}
      </ul>
    </>
  );
}

function HealthCard() {
  const loaded = useLoaded((signal) => Promise.all([health('live', signal), health('ready', signal)]), [], HEALTH_EVERY_MS);
  const index = useLoaded(readIndex, [], INDEX_EVERY_MS);
  // What was true before says nothing of a server that does not answer now.
  const [live, ready] = loaded.error ? [] : (loaded.value ?? []);
  return (
    <section class="card" aria-labelledby="health">
      <h2 id="health">Health</h2>
      {loaded.error ? <Notice kind="error">{loaded.error}</Notice> : <Pending of={loaded} />}
      {live && ready && <Said live={live} ready={ready} />}
      {!loaded.error && index.error && <Notice kind="info">{`Whether models could not be loaded is not known: ${index.error}`}</Notice>}
      {!loaded.error && !index.error && <Failed entries={failedOf(index.value ?? [])} />}
    </section>
  );
}

const SPANS = [
  ['5 minutes', 300],
  ['15 minutes', 900],
  ['1 hour', 3600],
] as const;

/** Where an axis of memory may have its lines. */
const POWERS = Array.from({ length: 26 }, (_, i) => 2 ** i);

export function Overview() {
  const { history, link, error } = useLoad();
  const [seconds, setSeconds] = useState<number>(300);
  const view = useMemo(() => {
    const start = startOf(history, seconds);
    const cut = (values: (number | null)[]) => values.slice(start);
    return { cut, times: history.time_s.slice(start) };
  }, [history, seconds]);
  const { cut, times } = view;
  const { machine, gpus } = history;
  const [cpus, memory] = [cpuScale(machine), memoryScale(machine)];
  const word = { opening: 'connecting', live: 'live', lost: 'not connected' }[link];
  return (
    <>
      <h1>Overview</h1>
      <HealthCard />
      <div class="bar-of-tools">
        <h2>Load</h2>
        <span class={`state ${link === 'live' ? 'good' : link === 'lost' ? 'bad' : 'busy'}`} role="status">
          {word}
        </span>
        <fieldset class="segments">
          <legend class="hidden">Time shown</legend>
          {SPANS.map(([label, value]) => (
            <label key={value}>
              <input type="radio" name="span" checked={seconds === value} onChange={() => setSeconds(value)} />
              <span>{label}</span>
            </label>
          ))}
        </fieldset>
      </div>
      {link === 'lost' && (
        <Notice kind="error">{error}</Notice>
      )}
      <div class="charts">
        <Chart
          title="Requests per second"
          times={times}
          show={number}
          lines={[
            { label: 'answered', color: '--c1', values: cut(history.requests) },
            { label: 'failed', color: '--c2', values: cut(history.errors) },
          ]}
        />
        <Chart
          title="Latency in the server"
          times={times}
          show={milliseconds}
          least={0.1}
          lines={[
            { label: 'p50', color: '--c1', values: cut(history.p50_ms) },
            { label: 'p99', color: '--c2', values: cut(history.p99_ms) },
          ]}
        />
        <Chart title="Requests that wait" times={times} show={number} lines={[{ label: 'queued', color: '--c1', values: cut(history.queued) }]} />
        <Chart
          title={cpus.title}
          note={cpus.note}
          times={times}
          show={number}
          top={cpus.top}
          lines={linesOf(cpus, cut(history.process_cpus), cut(history.machine_cpu))}
        />
        <Chart
          title={memory.title}
          note={memory.note}
          times={times}
          show={mebibytes}
          top={memory.top}
          steps={POWERS}
          lines={linesOf(memory, cut(history.process_mib), cut(history.machine_mib))}
        />
        {gpus.length > 0 && (
          <>
            <Chart
              title="GPU utilization"
              times={times}
              show={percent}
              top={1}
              lines={gpus.map((gpu, i) => ({ label: `GPU ${i}`, color: `--c${(i % 4) + 1}`, values: cut(gpu.use) }))}
            />
            <Chart
              title="GPU memory"
              times={times}
              show={mebibytes}
              steps={POWERS}
              lines={gpus.map((gpu, i) => ({ label: `GPU ${i}`, color: `--c${(i % 4) + 1}`, values: cut(gpu.mib) }))}
            />
          </>
        )}
      </div>
    </>
  );
}
