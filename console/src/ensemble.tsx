// SPDX-License-Identifier: Apache-2.0
// An ensemble as a drawing, and as a list of its steps.
import type { ModelConfig } from './api.ts';
import { layOut } from './graph.ts';
import { Table, linkTo } from './ui.tsx';

const WIDTH = 150;
const HEIGHT = 40;
const GAP_X = 90;
const GAP_Y = 26;

const short = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function Ensemble({ config }: { config: ModelConfig }) {
  const steps = config.ensemble_scheduling?.step ?? [];
  const graph = layOut((config.input ?? []).map((input) => input.name), (config.output ?? []).map((output) => output.name), steps);
  const x = (column: number) => column * (WIDTH + GAP_X) + 1;
  const y = (row: number) => row * (HEIGHT + GAP_Y) + 12;
  const width = graph.columns * (WIDTH + GAP_X) - GAP_X + 2;
  const height = graph.rows * (HEIGHT + GAP_Y) + 6;
  // A tensor between two steps has a name of its own, which stands once where it begins.
  const isNamed = (at: number) => {
    const edge = graph.edges[at];
    const kinds = [graph.nodes[edge?.from ?? 0]?.kind, graph.nodes[edge?.to ?? 0]?.kind];
    return kinds.every((kind) => kind === 'step') && graph.edges.findIndex((one) => one.from === edge?.from && one.tensor === edge?.tensor) === at;
  };
  return (
    <section aria-labelledby="ensemble">
      <h2 id="ensemble">Ensemble</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Drawing of the ensemble; the table below has the same">
        <svg class="graph" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true" focusable="false">
          {graph.edges.map((edge, i) => {
            const from = graph.nodes[edge.from];
            const to = graph.nodes[edge.to];
            if (!from || !to) return null;
            const [x1, y1] = [x(from.column) + WIDTH, y(from.row) + HEIGHT / 2];
            const [x2, y2] = [x(to.column), y(to.row) + HEIGHT / 2];
            const bend = (x2 - x1) / 2;
            return (
              <g key={i}>
                <path d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />
                <text class="edge" x={x1 + 6} y={y1 + (y2 - y1) * 0.12 - 5}>
                  {isNamed(i) ? short(edge.tensor, 12) : ''}
                </text>
              </g>
            );
          })}
          {graph.nodes.map((node, i) => (
            <g key={i} class={node.kind}>
              <rect x={x(node.column)} y={y(node.row)} width={WIDTH} height={HEIGHT} rx={node.kind === 'step' ? 6 : 20} />
              <text x={x(node.column) + WIDTH / 2} y={y(node.row) + HEIGHT / 2 + 5}>
                {short(node.label, 18)}
              </text>
            </g>
          ))}
        </svg>
      </div>
      <Table label="Steps of the ensemble" head={['Step', 'Model', 'Takes', 'Gives']} isPlain>
        {steps.map((step, i) => (
          <tr key={i}>
            <td class="number">{i + 1}</td>
            <th scope="row">
              <a href={linkTo('models', step.model_name)}>{step.model_name}</a>
            </th>
            <td>{Object.entries(step.input_map ?? {}).map(([name, tensor]) => <div key={name}>{`${tensor} as ${name}`}</div>)}</td>
            <td>{Object.entries(step.output_map ?? {}).map(([name, tensor]) => <div key={name}>{`${name} as ${tensor}`}</div>)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
