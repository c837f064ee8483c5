// SPDX-License-Identifier: Apache-2.0
// An ensemble as a drawing, and as a list of its steps, with what each takes.
import { ask, modelPath } from './api.ts';
import type { EnsembleStep, ModelConfig, ModelStat } from './api.ts';
import { milliseconds, wholePercent } from './format.ts';
import { layOut } from './graph.ts';
import type { Edge, Graph } from './graph.ts';
import { doneAt, meanOf, slowest, timesOf } from './steps.ts';
import type { StepTime } from './steps.ts';
import { Table, linkTo, useLoaded } from './ui.tsx';

const WIDTH = 192;
const HEIGHT = { input: 40, step: 70, output: 40 };
const GAP_X = 96;
const GAP_Y = 26;
const EVERY_MS = 5000;

const short = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The statistics of the models of all steps; of a model that this key may not see, or that is not loaded, there are none. */
async function readStats(steps: EnsembleStep[], signal: AbortSignal): Promise<ReadonlyMap<string, ModelStat[]>> {
  const read = async (model: string): Promise<[string, ModelStat[]]> => {
    try {
      return [model, (await ask<{ model_stats: ModelStat[] }>(`${modelPath(model)}/stats`, { signal })).model_stats];
    } catch (error) {
      if (signal.aborted) throw error;
      return [model, []];
    }
  };
  return new Map(await Promise.all([...new Set(steps.map((step) => step.model_name))].map(read)));
}

/** What a step takes, in its box: words, and a bar of its share, of which the first part is waiting. */
function Load({ x, y, time }: { x: number; y: number; time: StepTime | null }) {
  if (!time) return <text class="times" x={x + WIDTH / 2} y={y + 42}>times are not known</text>;
  const whole = WIDTH - 64;
  const part = (ms: number) => (time.share === null || !time.total ? 0 : Math.min(1, time.share) * (ms / time.total) * whole);
  return (
    <>
      <text class="times" x={x + WIDTH / 2} y={y + 40}>{`waits ${milliseconds(time.queue)}, runs ${milliseconds(time.compute)}`}</text>
      <rect class="track" x={x + 10} y={y + 51} width={whole} height={8} />
      <rect class="span-queue" x={x + 10} y={y + 51} width={part(time.queue)} height={8} />
      <rect class="span-compute" x={x + 10 + part(time.queue)} y={y + 51} width={part(time.compute)} height={8} />
      <text class="share" x={x + WIDTH - 10} y={y + 60}>{wholePercent(time.share)}</text>
    </>
  );
}

function Drawing({ graph, times }: { graph: Graph; times: (StepTime | null)[] }) {
  const row = HEIGHT.step + GAP_Y;
  const x = (column: number) => column * (WIDTH + GAP_X) + 1;
  const middle = (at: number) => at * row + HEIGHT.step / 2 + 1;
  const width = graph.columns * (WIDTH + GAP_X) - GAP_X + 2;
  const height = graph.rows * row - GAP_Y + 2;
  const done = doneAt(graph, times);
  const ends = graph.edges.flatMap((edge) => {
    const [from, to] = [graph.nodes[edge.from], graph.nodes[edge.to]];
    return from && to ? [{ edge, x1: x(from.column) + WIDTH, y1: middle(from.row), x2: x(to.column), y2: middle(to.row) }] : [];
  });
  // A tensor of the ensemble's own has its name in its node.
  const isInner = (edge: Edge) => [edge.from, edge.to].every((node) => graph.nodes[node]?.kind === 'step');
  let step = 0;
  return (
    <svg class="graph" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true" focusable="false">
      {ends.map(({ x1, y1, x2, y2 }, i) => (
        <path key={i} d={`M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`} />
      ))}
      {ends.map(({ edge, x1, y1 }, i) => {
        const ready = graph.nodes[edge.from]?.kind === 'step' ? (done[edge.from] ?? null) : null;
        // What is said of a tensor stands once, where it begins.
        if (ends.findIndex(({ edge: one }) => one.from === edge.from && one.tensor === edge.tensor) !== i) return null;
        return (
          <g key={i}>
            {isInner(edge) && <text class="edge" x={x1 + 6} y={y1 - (ready === null ? 6 : 20)}>{short(edge.tensor, 12)}</text>}
            {ready !== null && <text class="edge" x={x1 + 6} y={y1 - 6}>{`≈ ${milliseconds(ready)}`}</text>}
          </g>
        );
      })}
      {graph.nodes.map((node, i) => {
        const high = HEIGHT[node.kind];
        const [left, top] = [x(node.column), middle(node.row) - high / 2];
        const isStep = node.kind === 'step';
        return (
          <g key={i} class={node.kind}>
            <rect class="box" x={left} y={top} width={WIDTH} height={high} rx={isStep ? 6 : 20} />
            <text x={left + WIDTH / 2} y={isStep ? top + 21 : middle(node.row) + 5}>
              {short(node.label, 20)}
            </text>
            {isStep && <Load x={left} y={top} time={times[step++] ?? null} />}
          </g>
        );
      })}
    </svg>
  );
}

export function Ensemble({ config, stats }: { config: ModelConfig; stats: ModelStat[] }) {
  const steps = config.ensemble_scheduling?.step ?? [];
  const models = useLoaded((signal) => readStats(steps, signal), [config.name], EVERY_MS);
  const graph = layOut((config.input ?? []).map((input) => input.name), (config.output ?? []).map((output) => output.name), steps);
  const whole = meanOf(stats);
  const times = timesOf(steps, models.value ?? new Map<string, ModelStat[]>(), whole);
  const most = slowest(times);
  return (
    <section aria-labelledby="ensemble">
      <h2 id="ensemble">Ensemble</h2>
      {whole !== null && most >= 0 && (
        <p>
          A request takes {milliseconds(whole)} in the mean. The longest step is {most + 1}, {steps[most]?.model_name}, with{' '}
          {milliseconds(times[most]?.total)}.
        </p>
      )}
      <ul class="legend" aria-hidden="true">
        <li><svg viewBox="0 0 10 10"><rect class="span-queue" width="10" height="10" /></svg> waits for an instance</li>
        <li><svg viewBox="0 0 10 10"><rect class="span-compute" width="10" height="10" /></svg> runs</li>
        <li>≈ when a tensor is there, after the request has come</li>
      </ul>
      <div class="scroll" tabIndex={0} role="region" aria-label="Drawing of the ensemble; the table below has the same">
        <Drawing graph={graph} times={times} />
      </div>
      <Table label="Steps of the ensemble" head={['Step', 'Model', 'Takes', 'Gives', 'Waits', 'Runs', 'Of the ensemble’s time']} isPlain>
        {steps.map((step, i) => (
          <tr key={i}>
            <td class="number">{i + 1}</td>
            <th scope="row">
              <a href={linkTo('models', step.model_name)}>{step.model_name}</a>
            </th>
            <td>{Object.entries(step.input_map ?? {}).map(([name, tensor]) => <div key={name}>{`${tensor} as ${name}`}</div>)}</td>
            <td>{Object.entries(step.output_map ?? {}).map(([name, tensor]) => <div key={name}>{`${name} as ${tensor}`}</div>)}</td>
            <td class="number">{milliseconds(times[i]?.queue)}</td>
            <td class="number">{milliseconds(times[i]?.compute)}</td>
            <td class="number">{wholePercent(times[i]?.share)}</td>
          </tr>
        ))}
      </Table>
      <p class="muted">
        Times are means of all requests to the model of a step since it was loaded, whether they came by this ensemble or not: a share above
        100 % tells of others that take longer. Steps that run at the same time may be more than 100 % together.
      </p>
    </section>
  );
}
