// SPDX-License-Identifier: Apache-2.0
// How the server is: health with reasons, and its load, live.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { ask, health, onKey, send, textOf, textOfError, Refusal } from './api.ts';
import type { IndexEntry } from './api.ts';
import { Chart } from './chart.tsx';
import { readEvents } from './events.ts';
import { mebibytes, milliseconds, number, percent } from './format.ts';
import { emptyHistory, startOf, withSample } from './load.ts';
import type { History, Sample } from './load.ts';
import { Notice, Pending, State, linkTo, useLoaded } from './ui.tsx';
import { INDEX_EVERY_MS, readIndex } from './models.tsx';

type Link = 'opening' | 'live' | 'lost';
const LONGEST_PAUSE_MS = 10_000;

/** Follows the load until the signal; every loss of the connection is followed by another attempt. */
async function follow(signal: AbortSignal, change: (update: (old: History) => History) => void, tell: (link: Link, error: string) => void) {
  let pause = 500;
  while (!signal.aborted) {
    try {
      const reply = await send('/ui/api/live', { signal });
      if (!reply.ok) throw new Refusal(reply.status, textOfError(await reply.text(), reply.status));
      // What the stream sends from now on follows the history without a gap.
      const history = await ask<History>('/ui/api/history', { signal });
      change(() => history);
      tell('live', '');
      pause = 500;
      await readEvents(reply, (data) => change((old) => withSample(old, JSON.parse(data) as Sample)));
      if (!signal.aborted) tell('lost', 'the connection has ended');
    } catch (error) {
      if (signal.aborted) return;
      tell('lost', textOf(error));
      // Only another key helps, and then this starts again.
      if (error instanceof Refusal && (error.status === 401 || error.status === 403)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

function useLoad() {
  const [history, setHistory] = useState<History>(emptyHistory);
  const [link, setLink] = useState<{ link: Link; error: string }>({ link: 'opening', error: '' });
  const [turn, setTurn] = useState(0);
  useEffect(() => onKey((isWanted) => !isWanted && setTurn((n) => n + 1)), []);
  useEffect(() => {
    const abort = new AbortController();
    let isHidden = document.visibilityState === 'hidden';
    let run = new AbortController();
    const start = () => {
      run = new AbortController();
      void follow(run.signal, setHistory, (state, error) => setLink({ link: state, error }));
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

function HealthCard() {
  const loaded = useLoaded(() => Promise.all([health('live'), health('ready')]), [], 5000);
  const index = useLoaded(readIndex, [], INDEX_EVERY_MS);
  const [live, ready] = loaded.value ?? [];
  const problems = [...(live?.checks ?? []), ...(ready?.checks ?? [])].filter((check) => !check.ok);
  const unique = [...new Map(problems.map((check) => [check.name, check])).values()];
  const failed = (index.value ?? []).filter((entry) => entry.state === 'UNAVAILABLE' && entry.reason && entry.reason !== 'unloaded');
  return (
    <section class="card" aria-labelledby="health">
      <h2 id="health">Health</h2>
      <Pending of={loaded} />
      {live && ready && (
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
      )}
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
      {failed.length > 0 && (
        <>
          <h3>Models that could not be loaded</h3>
          <ul>
            {failed.map((entry: IndexEntry) => (
              <li key={entry.name + (entry.version ?? '')}>
                <a href={linkTo('models', entry.name)}>{entry.name}</a> <State state={entry.state} /> {entry.reason}
              </li>
            ))}
          </ul>
        </>
      )}
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
          title={`CPUs in use, of ${machine.cpus || 'all'}`}
          times={times}
          show={number}
          top={machine.cpus}
          lines={[
            { label: 'server', color: '--c1', values: cut(history.process_cpus) },
            { label: 'machine', color: '--c4', values: cut(history.machine_cpu).map((part) => (part === null ? null : part * machine.cpus)) },
          ]}
        />
        <Chart
          title={`Memory, of ${mebibytes(machine.memory_bytes / 2 ** 20)}`}
          times={times}
          show={mebibytes}
          steps={POWERS}
          lines={[
            { label: 'server', color: '--c1', values: cut(history.process_mib) },
            { label: 'machine', color: '--c4', values: cut(history.machine_mib) },
          ]}
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
