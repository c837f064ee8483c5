// SPDX-License-Identifier: Apache-2.0
// A chart over time, and the same numbers as a table for whoever does not see it.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clock } from './format.ts';
import { lastOf, toRows } from './load.ts';
import { onTheme } from './theme.ts';
import { Table } from './ui.tsx';

export interface Line {
  label: string;
  /** The name of a custom property of the style sheet. */
  color: string;
  values: (number | null)[];
}
interface Props {
  title: string;
  times: number[];
  lines: Line[];
  show: (value: number | null | undefined) => string;
  /** The top of the axis, if it is known. */
  top?: number | undefined;
  /** What has to be known for the chart to be understood, beside its title. */
  note?: string;
  /** What the axis reaches at least, so that a chart without anything is not one of tiny numbers. */
  least?: number;
  /** The distances that lines of the axis may have, if not round ones. */
  steps?: number[];
}

const hourAndMinute = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** With seconds where minutes would repeat. */
function times(ticks: number[]): string[] {
  const isClose = (ticks[1] ?? Infinity) - (ticks[0] ?? 0) < 60;
  return ticks.map((tick) => (isClose ? clock(tick) : hourAndMinute.format(tick * 1000)));
}

/** A colour of the style sheet as the current scheme has it: a canvas understands neither variables nor light-dark(). */
function colorOf(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

function options(props: Props, width: number): uPlot.Options {
  const axis = { stroke: colorOf('--muted'), grid: { stroke: colorOf('--line'), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: 170,
    legend: { show: false },
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true },
      y: { range: (_chart, _low, high) => [0, Math.max(props.top ?? 0, (high ?? 0) * 1.1, props.least ?? 1)] },
    },
    axes: [
      { ...axis, size: 32, space: 65, values: (_chart, ticks) => times(ticks) },
      { ...axis, size: 66, ...(props.steps ? { incrs: props.steps } : {}), values: (_chart, ticks) => ticks.map((tick) => props.show(tick)) },
    ],
    series: [
      {},
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: colorOf(line.color),
        width: 1.5,
        // Shown where there is room, and where a value stands alone.
        points: { size: 4 },
        spanGaps: false,
      })),
    ],
  };
}

function Canvas(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [turn, setTurn] = useState(0);
  const shape = props.lines.map((line) => line.label).join('|');
  useEffect(() => onTheme(() => setTurn((n) => n + 1)), []);
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const made = new uPlot(options(props, element.clientWidth), [[], ...props.lines.map(() => [])], element);
    chart.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: 170 }));
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [turn, shape, props.top]);
  useEffect(() => {
    chart.current?.setData([props.times, ...props.lines.map((line) => line.values)] as uPlot.AlignedData);
  }, [props.times, turn, shape, props.top]);
  return <div ref={host} class="canvas" aria-hidden="true" />;
}

export function Chart(props: Props) {
  const [showsTable, setShowsTable] = useState(false);
  const { title, lines, show, times } = props;
  return (
    <section class="card chart" aria-label={title}>
      <header>
        <h3>{title}</h3>
        <button type="button" class="small" aria-pressed={showsTable} onClick={() => setShowsTable(!showsTable)}>
          Table<span class="hidden"> of {title}</span>
        </button>
      </header>
      <ul class="legend">
        {lines.map((line) => (
          <li key={line.label}>
            <svg viewBox="0 0 10 10" aria-hidden="true" focusable="false">
              <circle cx="5" cy="5" r="5" class={`fill${line.color}`} />
            </svg>
            {line.label} <strong>{show(lastOf(line.values))}</strong>
          </li>
        ))}
      </ul>
      {props.note && <p class="muted note">{props.note}</p>}
      {showsTable ? (
        <Table label={`${title}, means over equal spans of time`} head={['until', ...lines.map((line) => line.label)]} isPlain>
          {toRows(
            times,
            lines.map((line) => line.values),
          ).map((row) => (
            <tr key={row.time_s}>
              <th scope="row">{clock(row.time_s)}</th>
              {row.values.map((value, i) => (
                <td class="number" key={lines[i]?.label}>
                  {show(value)}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      ) : (
        <Canvas {...props} />
      )}
    </section>
  );
}
