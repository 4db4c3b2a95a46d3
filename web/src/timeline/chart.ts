// Draws the time axis with uPlot: marks on a rail at the top, lines below it, and the density of samples at the bottom (one band,
// or one per thread or CPU). The component handles gestures.
import uPlot from 'uplot';
import type { Mark } from '../api/types';
import { axisTime } from '../text/format';
import type { Span } from '../model/axis';
import { axisTicks, wallClock } from './axis';
import type { Line } from './plots';

export interface Density {
  start: number; // ms
  slice: number; // ms
  rows: readonly (readonly number[])[]; // samples per slice; one row, or one per lane
}

export interface ChartState {
  span: Span;
  end: number; // the time up to which the session has data
  startedAt: number; // wall-clock time at ms 0
  density: Density | null;
  lanes: boolean;
  lines: readonly { line: Line; colour: string }[];
  marks: readonly Mark[];
  chosen: { start: number; end: number } | null;
  coarseUntil: number; // ms; earlier data is coarse; 0: all data has full detail
}

export const SIDE = 40; // px left and right of the plot, so that labels of the first and last tick fit
export const RAIL = 10;
export const LINES = 50;
export const BAND = 36;
export const LANE = 14;
// Colors of the marks that cover a time range, by kind.
const markColours = { loss: '--bad', reconnect: '--wait', change: '--accent' } as const;
const AXIS = 32;

export const plotHeight = (lanes: number, lines: boolean) =>
  RAIL + (lines ? LINES : 0) + (lanes > 0 ? lanes * LANE : BAND);

type Colours = (name: string) => string;

export class TimelineChart {
  private plot: uPlot | null = null;
  private shape = '';
  private state: ChartState | null = null;
  private colours: Colours = () => '';

  constructor(private readonly root: HTMLElement) {}

  draw(state: ChartState, width: number, colours: Colours): void {
    this.state = state;
    this.colours = colours;
    const height = plotHeight(state.lanes ? (state.density?.rows.length ?? 0) : 0, state.lines.length > 0) + AXIS;
    // Other lines, colors or sizes need a new plot, which takes about a millisecond.
    const shape = JSON.stringify([state.lines.map((one) => one.colour), colours('--dim'), width, height]);
    const data = this.table(state);
    if (this.plot && shape === this.shape) {
      this.plot.setData(data, false);
      this.plot.setScale('x', { min: state.span.from, max: state.span.to });
      return;
    }
    this.plot?.destroy();
    this.shape = shape;
    this.plot = new uPlot(this.options(width, height), data, this.root);
  }

  destroy(): void {
    this.plot?.destroy();
    this.plot = null;
  }

  // One column of times for all lines. A line has no value at the times of other lines; uPlot skips these points.
  private table(state: ChartState): uPlot.AlignedData {
    if (state.lines.length === 0) return [[state.span.from, state.span.to]];
    const tables = state.lines.map(
      ({ line }) => (line.time.length > 0 ? held(line) : [[state.span.from], [null]]) as uPlot.AlignedData,
    );
    // A gap in a line stays a gap at the times of other lines.
    const EXPAND = 2 as uPlot.JoinNullMode;
    return uPlot.join(
      tables,
      tables.map(() => [EXPAND, EXPAND]),
    );
  }

  private options(width: number, height: number): uPlot.Options {
    const lines = this.state!.lines;
    const plotted = height - AXIS;
    return {
      width,
      height,
      ms: 1,
      padding: [0, SIDE, 0, SIDE],
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: () => [this.state!.span.from, this.state!.span.to] },
        ...Object.fromEntries(
          lines.map((_, i) => [
            `y${i}`,
            {
              // Zero is at the lower edge of the area for lines, and the maximum is just below the rail.
              range: (_plot: uPlot, _min: number | null, max: number | null): [number, number] => {
                const top = Math.max(1e-9, max ?? 0) * 1.04;
                return [(-top * (plotted - RAIL - LINES)) / LINES, (top * (RAIL + LINES)) / LINES];
              },
            },
          ]),
        ),
      },
      series: [
        {},
        ...lines.map(({ colour }, i) => ({
          scale: `y${i}`,
          stroke: colour,
          width: 1.5,
          points: { show: false },
          paths: uPlot.paths.stepped!({ align: 1 }),
        })),
      ],
      axes: [
        {
          scale: 'x',
          size: AXIS,
          gap: 2,
          stroke: () => this.colours('--dim'),
          font: '11px system-ui, sans-serif',
          grid: { show: false },
          ticks: { stroke: () => this.colours('--line-strong'), width: 1, size: 4 },
          splits: (plot) => axisTicks(this.state!.span, plot.width - 2 * SIDE),
          values: (_plot, splits) => this.labels(splits),
        },
      ],
      hooks: { drawClear: [(plot) => this.under(plot)], draw: [(plot) => this.over(plot)] },
    };
  }

  // The time since the start, and below it the wall-clock time.
  private labels(splits: readonly number[]): string[] {
    const step = splits.length > 1 ? splits[1]! - splits[0]! : this.state!.span.to - this.state!.span.from;
    return splits.map((ms) => `${axisTime(ms)}\n${wallClock(this.state!.startedAt + ms, step)}`);
  }

  private x(plot: uPlot, ms: number): number {
    const { from, to } = this.state!.span;
    return plot.bbox.left + ((ms - from) / (to - from)) * plot.bbox.width;
  }

  private clip(plot: uPlot, body: (context: CanvasRenderingContext2D, ratio: number) => void): void {
    const { ctx } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    body(ctx, uPlot.pxRatio);
    ctx.restore();
  }

  private under(plot: uPlot): void {
    const { density, lanes, coarseUntil, span } = this.state!;
    const { left, top, height } = plot.bbox;
    this.clip(plot, (context, ratio) => {
      if (coarseUntil > span.from)
        hatch(context, left, top, this.x(plot, coarseUntil) - left, height, ratio, this.colours('--line-strong'));
      if (!density) return;
      const bottom = top + height;
      const rows = density.rows;
      const lane = LANE * ratio;
      // All lanes have the same scale, so that they are comparable.
      const most = rows.reduce((m, row) => row.reduce((a, b) => Math.max(a, b), m), 0);
      rows.forEach((row, i) => {
        const base = lanes ? bottom - (rows.length - 1 - i) * lane : bottom;
        const room = (lanes ? LANE - 3 : BAND - 3) * ratio;
        if (lanes) {
          context.fillStyle = this.colours('--line');
          context.fillRect(left, base - ratio, plot.bbox.width, ratio);
        }
        context.fillStyle = this.colours('--strip-bar');
        this.bars(plot, context, row, density, most, base - (lanes ? ratio : 0), room, ratio);
      });
    });
  }

  // One bar per slice. If slices are narrower than a pixel, the highest bar of each pixel is visible.
  private bars(
    plot: uPlot,
    context: CanvasRenderingContext2D,
    row: readonly number[],
    density: Density,
    most: number,
    base: number,
    room: number,
    ratio: number,
  ): void {
    if (most === 0) return;
    const gap =
      (density.slice / (this.state!.span.to - this.state!.span.from)) * plot.bbox.width >= 3 * ratio
        ? Math.max(1, Math.round(ratio / 2))
        : 0;
    for (let i = 0; i < row.length; i++) {
      if (row[i] === 0) continue;
      const from = Math.round(this.x(plot, density.start + i * density.slice));
      const to = Math.round(this.x(plot, density.start + (i + 1) * density.slice));
      if (to < plot.bbox.left || from > plot.bbox.left + plot.bbox.width) continue;
      const height = Math.max(ratio, (row[i]! / most) * room);
      context.fillRect(from, base - height, Math.max(1, to - from - gap), height);
    }
  }

  private over(plot: uPlot): void {
    const { marks, chosen, span, end } = this.state!;
    const { left, top, width, height } = plot.bbox;
    this.clip(plot, (context, ratio) => {
      for (const mark of marks) this.mark(plot, context, mark, ratio);
      // Hatch the time range that does not have data yet.
      if (end < span.to)
        hatch(context, this.x(plot, end), top, left + width - this.x(plot, end), height, ratio, this.colours('--line'));
      if (!chosen) return;
      const a = this.x(plot, chosen.start);
      const b = this.x(plot, chosen.end);
      context.fillStyle = this.colours('--strip-shade');
      context.fillRect(left, top, a - left, height);
      context.fillRect(b, top, left + width - b, height);
      context.fillStyle = this.colours('--accent');
      context.fillRect(Math.round(a - ratio / 2), top, ratio, height);
      context.fillRect(Math.round(b - ratio / 2), top, ratio, height);
    });
  }

  // The kinds differ in shape and not only in color.
  private mark(plot: uPlot, context: CanvasRenderingContext2D, mark: Mark, ratio: number): void {
    const top = plot.bbox.top;
    const a = this.x(plot, mark.start_ms);
    const b = Math.max(a + 2 * ratio, this.x(plot, mark.end_ms));
    const size = 4 * ratio;
    const middle = top + 5 * ratio;
    if (mark.kind === 'loss' || mark.kind === 'reconnect' || mark.kind === 'change') {
      context.fillStyle = this.colours(markColours[mark.kind]);
      context.fillRect(a, top + ratio, b - a, (RAIL - 3) * ratio);
      context.globalAlpha = 0.16;
      context.fillRect(a, top, b - a, plot.bbox.height);
      context.globalAlpha = 1;
      return;
    }
    context.fillStyle = this.colours(mark.kind === 'exit' ? '--dim' : '--accent');
    context.beginPath();
    if (mark.kind === 'exec') {
      context.moveTo(a, middle - size);
      context.lineTo(a + size, middle);
      context.lineTo(a, middle + size);
      context.lineTo(a - size, middle);
    } else {
      const up = mark.kind === 'begin' ? -1 : 1;
      context.moveTo(a, middle + up * size);
      context.lineTo(a + size, middle - up * size);
      context.lineTo(a - size, middle - up * size);
    }
    context.closePath();
    context.fill();
  }
}

// uPlot draws a step up to the next value, so a step before a gap needs an additional point at its end.
function held(line: Line): [number[], (number | null)[]] {
  const time: number[] = [];
  const value: (number | null)[] = [];
  line.time.forEach((ms, i) => {
    const before = value.at(-1);
    if (line.value[i] === null && before !== null && before !== undefined) {
      time.push(ms - 1e-3);
      value.push(before);
    }
    time.push(ms);
    value.push(line.value[i]!);
  });
  return [time, value];
}

function hatch(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  width: number,
  height: number,
  ratio: number,
  colour: string,
): void {
  if (width <= 0) return;
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = ratio;
  context.beginPath();
  const step = 6 * ratio;
  for (let x = left - height - (left % step); x < left + width; x += step) {
    context.moveTo(x, top + height);
    context.lineTo(x + height, top);
  }
  context.stroke();
  context.restore();
}
