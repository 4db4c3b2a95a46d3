// Texts of changes, and the functions table of a comparison. Pure.
import type { FunctionDiff } from '../api/types';
import type { Pattern } from '../model/pattern';
import type { Baseline, Change, Normalise } from '../model/baseline';
import type { ChangeSort } from '../model/view_state';
import { csv } from './counters';
import { duration, weight } from './format';
import { orderByNumber } from './functions';

// A difference of shares in percentage points, or of rates in weight per second. A change never shows as a bare 0.
export function changeText(change: number, normalise: Normalise, unit: string): string {
  if (change === 0) return '0';
  const sign = change < 0 ? '−' : '+';
  const size = Math.abs(change);
  if (normalise === 'time') return `${sign}${weight(size, unit)}/s`;
  const points = size * 100;
  return points < 0.005 ? `${sign}<0.01 pp` : `${sign}${points.toFixed(points < 9.995 ? 2 : 1)} pp`;
}

// The same for the end of a scale, which is a round number.
export function scaleText(scale: number, normalise: Normalise, unit: string): string {
  return normalise === 'time' ? `${weight(scale, unit)}/s` : `${Number((scale * 100).toPrecision(3))} pp`;
}

export function rangeText(start: number | null, end: number | null): string {
  if (start === null && end === null) return '';
  return `${start === null ? 'start' : duration(start)} – ${end === null ? 'end' : duration(end)}`;
}

// The part of its session that a baseline covers; '' for all of it.
export function partText(baseline: Baseline, threadName: (tid: number) => string): string {
  const threads =
    baseline.tids.length === 1
      ? `thread ${threadName(baseline.tids[0]!)}`
      : baseline.tids.length > 1
        ? `${baseline.tids.length} threads`
        : '';
  const pids = baseline.pids.length > 0 ? `pid ${baseline.pids.join(', ')}` : '';
  return [threads, pids, rangeText(baseline.start, baseline.end)].filter(Boolean).join(', ');
}

const fits: Record<Change, (row: FunctionDiff) => boolean> = {
  all: () => true,
  new: (row) => row.presence === 'new',
  gone: (row) => row.presence === 'gone',
  grew: (row) => row.self_change > 0,
  shrank: (row) => row.self_change < 0,
};

export function countChanges(rows: readonly FunctionDiff[]): Record<Change, number> {
  const counts: Record<Change, number> = { all: rows.length, new: 0, gone: 0, grew: 0, shrank: 0 };
  for (const change of ['new', 'gone', 'grew', 'shrank'] as const)
    for (const row of rows) if (fits[change](row)) counts[change]++;
  return counts;
}

// Changes are ordered by size, regardless of their sign.
function keysOf(rows: readonly FunctionDiff[], key: ChangeSort): Float64Array {
  if (key === 'name' || key === 'module') {
    const texts = [...new Set(rows.map((row) => row[key]))].sort();
    const rank = new Map(texts.map((text, i) => [text, i]));
    return Float64Array.from(rows, (row) => rank.get(row[key])!);
  }
  return Float64Array.from(rows, (row) => Math.abs(row[key]));
}

export interface ChangeFilter {
  change: Change;
  pattern: Pattern | null;
  module: string;
}

export function selectChanges(
  rows: readonly FunctionDiff[],
  key: ChangeSort,
  ascending: boolean,
  filter: ChangeFilter,
): FunctionDiff[] {
  const order = orderByNumber(keysOf(rows, key));
  const kept: FunctionDiff[] = [];
  for (let i = 0; i < order.length; i++) {
    const row = rows[order[ascending ? i : order.length - 1 - i]!]!;
    if (!fits[filter.change](row) || (filter.module && row.module !== filter.module)) continue;
    if (filter.pattern && !filter.pattern.test(row.name) && !filter.pattern.test(row.module)) continue;
    kept.push(row);
  }
  return kept;
}

export function changesCsv(rows: readonly FunctionDiff[], unit: string, normalise: Normalise): string {
  const per = normalise === 'time' ? `${unit} a second` : 'share';
  const head = [
    'function',
    'module',
    'kind',
    'presence',
    `self change (${per})`,
    `self (${unit})`,
    `self of the baseline (${unit})`,
    `total change (${per})`,
    `total (${unit})`,
    `total of the baseline (${unit})`,
    'self samples',
    'self samples of the baseline',
    'total samples',
    'total samples of the baseline',
  ];
  return csv([
    head,
    ...rows.map((row) => [
      row.name,
      row.module,
      row.kind,
      row.presence,
      row.self_change.toPrecision(6),
      String(row.self),
      String(row.base_self),
      row.total_change.toPrecision(6),
      String(row.total),
      String(row.base_total),
      String(row.self_samples),
      String(row.base_self_samples),
      String(row.total_samples),
      String(row.base_total_samples),
    ]),
  ]);
}
