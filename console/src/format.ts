// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

export const NOTHING = '–';

/** Three digits that count, with thousands separated. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  if (value === 0) return '0';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

/** "1 request", "2 requests". */
export function counted(count: number, one: string, many: string): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function milliseconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  if (value >= 1000) return `${number(value / 1000)} s`;
  if (value < 1 && value > 0) return `${number(value * 1000)} µs`;
  return `${number(value)} ms`;
}

export function mebibytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  return value >= 1024 ? `${number(value / 1024)} GiB` : `${number(value)} MiB`;
}

export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  return `${number(value * 100)} %`;
}

/** For parts of a whole that is not known to a thousandth. */
export function wholePercent(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  return value > 0 && value < 0.01 ? '< 1 %' : `${number(Math.round(value * 100))} %`;
}

export function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
}

/** The time of something that is listed by time, with the day where that is not today's. */
export function clockOfDay(ms: number, now = Date.now()): string {
  const [then, today] = [new Date(ms), new Date(now)];
  const time = clock(ms / 1000);
  if (then.toDateString() === today.toDateString()) return time;
  const two = (number: number) => String(number).padStart(2, '0');
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${time}`;
}

export function moment(ms: number): string {
  return ms ? new Date(ms).toLocaleString() : 'never';
}

/** [64] and [-1, 3], as configurations write them. */
export function shape(dims: readonly (number | string)[]): string {
  return `[${dims.join(', ')}]`;
}
