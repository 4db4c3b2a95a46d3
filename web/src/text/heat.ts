// Hot lines of a source file: the stops when the user steps through it.
import type { SourceLine } from '../api/types';

const WORTH_OF_HOTTEST = 0.05;

// Line numbers in the order of the file: every line with at least a twentieth of the hottest line's self weight.
export function hotLines(lines: readonly SourceLine[]): number[] {
  const most = lines.reduce((max, line) => Math.max(max, line.weight), 0);
  if (most === 0) return [];
  return lines.filter((line) => line.weight >= most * WORTH_OF_HOTTEST).map((line) => line.line);
}

// The next hot line after (or before) `from`. It wraps around at the ends.
export function nextHot(lines: readonly number[], from: number, direction: 1 | -1): number {
  if (lines.length === 0) return 0;
  if (direction > 0) return lines.find((line) => line > from) ?? lines[0]!;
  return lines.findLast((line) => line < from) ?? lines.at(-1)!;
}

// Heat in five steps of the share of the view's total, so that the heat of different files is comparable.
export function heatOf(share: number): number {
  return share >= 20 ? 5 : share >= 8 ? 4 : share >= 3 ? 3 : share >= 1 ? 2 : share > 0 ? 1 : 0;
}

// The lines to print: the whole file, or `most` lines around the hottest one.
export function linesOnPaper<Line extends { line: number }>(
  lines: readonly Line[],
  hottest: number,
  most = 1000,
): readonly Line[] {
  if (lines.length <= most) return lines;
  const at = Math.max(
    0,
    lines.findIndex((line) => line.line === hottest),
  );
  const first = Math.min(Math.max(0, at - Math.floor(most / 2)), lines.length - most);
  return lines.slice(first, first + most);
}
