// Numbers and labels of the counters panel and the health cards. Pure.
import { count, duration, percent, short } from './format';

export type CounterStatus = 'counted' | 'not_counted' | 'unsupported' | 'never_counts' | 'forbidden';

// A label and an explanation; null for a counter that was counted.
export function statusWord(status: CounterStatus): { word: string; why: string } | null {
  switch (status) {
    case 'counted':
      return null;
    case 'not_counted':
      return {
        word: 'not counted',
        why: 'It was never scheduled on a performance counter in this time, so its value is unknown.',
      };
    case 'unsupported':
      return { word: 'not supported', why: 'This kernel, CPU or virtual machine has no such event.' };
    case 'never_counts':
      return {
        word: 'never counts',
        why: 'It can be opened here, but stays at 0 when it should count.',
      };
    case 'forbidden':
      return { word: 'forbidden', why: 'The kernel refuses it to the agent; run it as root or with cap_perfmon.' };
  }
}

export function counterValue(value: number, unit: string): string {
  return unit === 'ns' ? duration(value / 1e6) : count(value);
}

// For clocks the rate is in CPU seconds per second, which the derived figure already shows.
export function counterRate(perSecond: number | undefined, unit: string): string {
  if (perSecond === undefined || unit === 'ns') return '';
  return `${short(perSecond)}/s`;
}

// In the style of perf stat: 1.998 CPUs utilized, 2.51 % of all branches.
export function derivedText(figure: { value: number; label: string }): string {
  if (!Number.isFinite(figure.value)) return '';
  if (figure.label.startsWith('%')) return `${figure.value.toFixed(2)} ${figure.label}`;
  return `${figure.value.toFixed(3)} ${figure.label}`;
}

// The share of its time in which a counter was counted; '' if that is practically all of it.
export function shareCounted(percentCounted: number | undefined): string {
  return percentCounted === undefined || percentCounted > 99.95 ? '' : percent(percentCounted / 100);
}

// The table as rows of fields, for a spreadsheet: plain numbers, or words where a number is missing.
export interface CounterCells {
  name: string;
  unit: string;
  status: CounterStatus;
  value?: number;
  per_second?: number;
  percent_counted?: number;
  derived: readonly { value: number; label: string }[];
}
export function counterRows(groups: readonly { title: string; counters: readonly CounterCells[] }[]): string[][] {
  const rows = [['scope', 'counter', 'unit', 'value', 'per second', 'derived', '% of time counted']];
  for (const { title, counters } of groups)
    for (const counter of counters)
      rows.push([
        title,
        counter.name,
        counter.unit,
        statusWord(counter.status)?.word ?? String(counter.value ?? ''),
        counter.per_second === undefined ? '' : String(counter.per_second),
        counter.derived.map(derivedText).filter(Boolean).join('; '),
        counter.percent_counted === undefined ? '' : counter.percent_counted.toFixed(2),
      ]);
  return rows;
}

// The characters that printable() of the server replaces: control characters, line separators, bidirectional formatting.
const UNPRINTABLE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const NUMBER = /^-?\d+(\.\d+)?(e[+-]\d+)?$/;

// RFC 4180, with a quote before text that a spreadsheet would interpret as a formula. Numbers are unchanged.
export function csv(rows: readonly (readonly string[])[]): string {
  const field = (text: string) => {
    const printable = text.replace(UNPRINTABLE, ' ');
    const safe = /^[=+@-]/.test(printable.trimStart()) && !NUMBER.test(printable) ? `'${printable}` : printable;
    return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(field).join(',')).join('\r\n') + '\r\n';
}

export interface Series {
  readonly start_ms: readonly number[];
  readonly end_ms: readonly number[];
  readonly value: readonly number[];
}

// Rates over time as an SVG path in a box, with 0 at the bottom. Intervals differ in length.
// The line has a gap where nothing was counted.
export function sparkPath(series: Series, width: number, height: number): string {
  const { start_ms: starts, end_ms: ends, value } = series;
  if (ends.length === 0) return '';
  const from = starts[0]!;
  const span = ends[ends.length - 1]! - from;
  if (!(span > 0)) return '';
  const rates = value.map((v, i) => v / Math.max(1e-9, ends[i]! - starts[i]!));
  const most = rates.reduce((a, b) => Math.max(a, b), 0);
  let path = '';
  let end = NaN;
  rates.forEach((rate, i) => {
    const x0 = ((starts[i]! - from) / span) * width;
    const x1 = ((ends[i]! - from) / span) * width;
    const y = most > 0 ? height - (rate / most) * height : height;
    const connected = Math.abs(starts[i]! - end) < 1;
    path += `${connected ? 'L' : 'M'}${x0.toFixed(1)} ${y.toFixed(1)}H${x1.toFixed(1)}`;
    end = ends[i]!;
  });
  return path;
}

export type Level = 'ok' | 'warning' | 'critical';

const limits = { cpu: [80, 95], mem: [85, 95], temp: [80, 95], oom: [500, 800] } as const;

export function level(kind: keyof typeof limits, value: number | null | undefined): Level {
  if (value === null || value === undefined) return 'ok';
  const [warning, critical] = limits[kind];
  return value >= critical ? 'critical' : value >= warning ? 'warning' : 'ok';
}
