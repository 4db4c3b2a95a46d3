// The time axis above all views: samples as a density, counters and health as lines, events as marks.
// Dragging chooses the range of every view.
import { computed, signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { Timeline as Answer } from '../../api/types';
import { isLive, session } from '../../store/session';
import { theme } from '../../store/theme';
import {
  axisSpan,
  clearRange,
  followNow,
  follows,
  panAxis,
  plots,
  sessionEnd,
  showAllTime,
  startedAt,
  timeline,
  timelineWidth,
  togglePlot,
  zoomAxis,
} from '../../store/timeline';
import type { Lanes } from '../../model/view_state';
import { setView, view } from '../../store/view';
import { rangeOf, snapped, wallClock } from '../../timeline/axis';
import { LANE, LINES, plotHeight, RAIL, SIDE, TimelineChart, type Density } from '../../timeline/chart';
import { markText, marksAt } from '../../timeline/marks';
import { valueAt } from '../../timeline/plots';
import { count, duration } from '../../text/format';
import { Button } from '../widgets/Button';
import { Icon } from '../widgets/Icon';
import { PlotMenu } from './PlotMenu';

const MOST_LANES = 12;
const laneNames: Record<Lanes, string> = { total: 'All', thread: 'Threads', cpu: 'CPUs' };

interface Lane {
  name: string;
  detail: string;
  samples: readonly number[];
}

// The busiest lanes, in an order that does not change with new data.
function lanesOf(answer: Answer): Lane[] {
  const rows = (answer.rows ?? []).slice(0, MOST_LANES).sort((a, b) => (a.cpu ?? a.tid ?? 0) - (b.cpu ?? b.tid ?? 0));
  return rows.map((row) => ({
    name: row.cpu === undefined ? (row.comm ?? '') : `CPU ${row.cpu}`,
    detail:
      row.cpu === undefined
        ? `${row.comm ?? '?'}, thread ${row.tid ?? '?'} of process ${row.pid ?? '?'}`
        : `CPU ${row.cpu}`,
    samples: row.samples,
  }));
}

const lanes = computed(() => (timeline.data.value && view.value.lanes !== 'total' ? lanesOf(timeline.data.value) : []));
const hidden = computed(() => {
  const answer = timeline.data.value;
  return answer?.rows ? answer.rows.length - lanes.value.length + (answer.rows_left_out ?? 0) : 0;
});
const density = computed<Density | null>(() => {
  const answer = timeline.data.value;
  if (!answer) return null;
  return {
    start: answer.start_ms,
    slice: answer.slice_ms,
    rows: answer.rows ? lanes.value.map((lane) => lane.samples) : [answer.samples],
  };
});
// Colors differ in hue. Neighbors also differ in lightness.
const lineColours = ['--line-1', '--line-2', '--line-3', '--line-4', '--line-5', '--line-6'];
const shownPlots = computed(() =>
  view.value.plots.length > 0 ? (plots.data.value ?? []).filter((plot) => view.value.plots.includes(plot.id)) : [],
);

interface Drag {
  x: number; // where the drag began
  from: number;
  to: number;
}

interface Pointer {
  x: number; // relative to the plot
  y: number;
}
const pointer = signal<Pointer | null>(null);
const plotWidth = () => Math.max(1, timelineWidth.value);
const timeAt = (x: number) => {
  const { from, to } = axisSpan.value;
  return from + (Math.min(plotWidth(), Math.max(0, x)) / plotWidth()) * (to - from);
};

function Chips() {
  const at = pointer.value ? timeAt(pointer.value.x) : sessionEnd.value;
  return (
    <>
      {shownPlots.value.map((plot, i) => {
        const value = valueAt(
          plot.line,
          pointer.value ? at : (plot.line.time.findLast((_, j) => plot.line.value[j] !== null) ?? at),
        );
        return (
          <span key={plot.id} class="chip plot-chip" data-plot={plot.id}>
            <span class="plot-key" style={{ background: `var(${lineColours[i % lineColours.length]})` }} />
            {plot.name} <span class="plot-value">{value === null ? '–' : plot.format(value)}</span>
            <button
              type="button"
              class="chip-clear"
              aria-label={`Remove ${plot.name}`}
              title="Remove it"
              onClick={() => togglePlot(plot.id)}
            >
              <Icon name="close" />
            </button>
          </span>
        );
      })}
    </>
  );
}

function Tools() {
  const span = axisSpan.value;
  const whole = view.value.axis === null;
  return (
    <div class="strip-tools">
      <div class="segments" role="group" aria-label="Samples over time of">
        {(Object.keys(laneNames) as Lanes[]).map((name) => (
          <button
            key={name}
            type="button"
            class="segment"
            aria-pressed={view.value.lanes === name}
            onClick={() => setView({ lanes: name }, 'replace')}
          >
            {laneNames[name]}
          </button>
        ))}
      </div>
      <PlotMenu />
      <Chips />
      <span class="spacer" />
      <span class="faint" id="axis-span">
        {whole ? `all ${duration(span.to)}` : `${duration(span.from)} – ${duration(span.to)}`}
      </span>
      {isLive.value && (
        <Button
          icon="play"
          title={follows.value ? 'Follows what comes in' : 'Follow what comes in (L)'}
          pressed={follows.value}
          onClick={followNow}
        >
          Now
        </Button>
      )}
      <Button title="Zoom in (+, wheel)" onClick={() => zoomAxis(0.5)}>
        +
      </Button>
      <Button title="Zoom out (-, wheel)" onClick={() => zoomAxis(2)}>
        −
      </Button>
      <Button title="All times (0)" onClick={showAllTime} disabled={whole}>
        All
      </Button>
    </div>
  );
}

function Hint() {
  const at = pointer.value;
  const answer = timeline.data.value;
  if (!at || !answer) return null;
  const ms = timeAt(at.x);
  const span = axisSpan.value;
  const slice = Math.floor((ms - answer.start_ms) / answer.slice_ms);
  const bottom = plotHeight(lanes.value.length, shownPlots.value.length > 0);
  const first = bottom - lanes.value.length * LANE;
  const lane = lanes.value[Math.floor((at.y - first) / LANE)];
  const samples = (lane ? lane.samples : answer.samples)[slice];
  const reach = ((span.to - span.from) / plotWidth()) * 5;
  const marks = marksAt(answer.marks, ms, reach);
  const coarse = answer.coarse?.find((stretch) => ms >= stretch.start_ms && ms < stretch.end_ms);
  return (
    <div class={`strip-hint ${at.x > plotWidth() * 0.6 ? 'strip-hint-left' : ''}`} style={{ left: `${SIDE + at.x}px` }}>
      <strong>{duration(ms)}</strong>{' '}
      <span class="faint">{wallClock(startedAt.value + ms, span.to - span.from < 60_000 ? 1 : 1000)}</span>
      {samples !== undefined && (
        <div>
          {lane && `${lane.detail}: `}
          {count(samples)} samples <span class="faint">in {duration(answer.slice_ms)}</span>
        </div>
      )}
      {coarse && (
        <div class="strip-mark">
          {coarse.dropped
            ? 'No longer in memory; the session file has it'
            : `Only steps of ${duration(coarse.bucket_ms)} are left of this time`}
        </div>
      )}
      {shownPlots.value.map((plot) => {
        const value = valueAt(plot.line, ms);
        return (
          <div key={plot.id}>
            {plot.name}: {value === null ? 'not known' : plot.format(value)}
          </div>
        );
      })}
      {marks.slice(0, 4).map((mark) => (
        <div key={`${mark.kind}${mark.start_ms}`} class="strip-mark">
          {markText(mark)}
        </div>
      ))}
      {marks.length > 4 && <div class="faint">and {marks.length - 4} more</div>}
    </div>
  );
}

// Keys that work while the axis has the focus. The keys of the whole page are in keys.ts.
function onAxisKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'ArrowLeft') panAxis(-0.1);
  else if (event.key === 'ArrowRight') panAxis(0.1);
  else if (event.key === 'ArrowUp') zoomAxis(0.5);
  else if (event.key === 'ArrowDown') zoomAxis(2);
  else if (event.key === 'Home') panAxis(-1e9);
  else if (event.key === 'End') panAxis(1e9);
  else if (event.key === 'Escape') clearRange();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

export function Timeline() {
  const root = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const chart = useRef<TimelineChart | null>(null);
  // In ms, because a live axis moves below the pointer during a drag.
  const drag = useSignal<Drag | null>(null);
  const pan = useRef<number | null>(null);
  const ratio = useSignal(devicePixelRatio);

  useLayoutEffect(() => {
    const element = root.current!;
    const made = new TimelineChart(element);
    chart.current = made;
    const observer = new ResizeObserver(() => {
      timelineWidth.value = Math.max(50, element.clientWidth - 2 * SIDE);
      ratio.value = devicePixelRatio;
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);

  useEffect(() => {
    const element = area.current!;
    // Not passive, because the page must not scroll.
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const x = event.clientX - element.getBoundingClientRect().left;
      const scale = event.deltaMode === 1 ? 30 : 1;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
        panAxis((((event.deltaX || event.deltaY) * scale) / plotWidth()) * 0.7);
      else zoomAxis(Math.exp(Math.max(-1, Math.min(1, event.deltaY * scale * 0.002))), timeAt(x));
    };
    element.addEventListener('wheel', wheel, { passive: false });
    return () => element.removeEventListener('wheel', wheel);
  }, []);

  const v = view.value;
  const chosen = v.tab === 'events' ? v.hit : null;
  const span = axisSpan.value;
  const answer = timeline.data.value;
  const lines = shownPlots.value;
  const rows = lanes.value.length;
  // Drawn in the same frame as the other changes of an answer.
  useLayoutEffect(() => {
    const style = getComputedStyle(document.documentElement);
    chart.current?.draw(
      {
        span,
        end: sessionEnd.value,
        startedAt: startedAt.value,
        density: density.value,
        lanes: rows > 0,
        lines: lines.map((plot, i) => ({
          line: plot.line,
          colour: style.getPropertyValue(lineColours[i % lineColours.length]!),
        })),
        marks: answer?.marks ?? [],
        chosen:
          drag.value || (v.start === null && v.end === null)
            ? null
            : { start: v.start ?? 0, end: v.end ?? sessionEnd.value },
        coarseUntil: session.value?.retention?.whole_from_ms ?? 0,
      },
      timelineWidth.value + 2 * SIDE,
      (name) => style.getPropertyValue(name),
    );
  }, [span, answer, lines, v.start, v.end, theme.value, timelineWidth.value, ratio.value, drag.value !== null]);

  const at = (event: PointerEvent) => {
    const box = area.current!.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const height = plotHeight(rows, lines.length > 0);
  const x = (ms: number) => ((ms - span.from) / (span.to - span.from)) * plotWidth();

  return (
    <section class="strip" aria-label="Time axis">
      <Tools />
      <div class="strip-chart">
        <div ref={root} aria-hidden="true" />
        {lanes.value.map((lane, i) => (
          <div
            key={lane.detail}
            class="strip-lane"
            title={lane.detail}
            style={{ top: `${RAIL + (lines.length > 0 ? LINES : 0) + i * LANE}px`, left: `${SIDE + 2}px` }}
          >
            {lane.name}
          </div>
        ))}
        <div
          class="strip-area"
          ref={area}
          id="time-strip"
          tabIndex={0}
          role="application"
          aria-label="Samples over time: drag chooses a range, arrow keys move and zoom"
          aria-description={`Shows ${duration(span.from)} to ${duration(span.to)}`}
          style={{ left: `${SIDE}px`, right: `${SIDE}px`, height: `${height}px` }}
          onKeyDown={onAxisKey}
          onPointerDown={(event) => {
            if (event.button > 1) return;
            area.current!.setPointerCapture(event.pointerId);
            if (event.button === 1 || event.shiftKey) pan.current = at(event).x;
            else drag.value = { x: at(event).x, from: timeAt(at(event).x), to: timeAt(at(event).x) };
          }}
          onPointerMove={(event) => {
            const here = at(event);
            pointer.value = here;
            if (drag.value) drag.value = { ...drag.value, to: timeAt(here.x) };
            if (pan.current !== null) {
              panAxis((pan.current - here.x) / plotWidth());
              pan.current = here.x;
            }
          }}
          onPointerLeave={() => (pointer.value = null)}
          onPointerUp={(event) => {
            const dragged = drag.value;
            drag.value = null;
            pan.current = null;
            const far = dragged !== null && Math.abs(at(event).x - dragged.x) >= 4;
            const range = far && rangeOf(dragged.from, timeAt(at(event).x), sessionEnd.value);
            if (range) setView(snapped(range, answer?.coarse ?? [], session.value?.start_ns ?? 0));
          }}
          onPointerCancel={() => {
            drag.value = null;
            pan.current = null;
          }}
          onDblClick={clearRange}
        >
          {chosen && chosen.ms >= span.from && chosen.ms <= span.to && (
            <div class="strip-moment" title="The chosen hit" style={{ left: `${x(chosen.ms)}px` }} />
          )}
          {drag.value && (
            <div
              class="strip-range"
              style={{
                left: `${x(Math.min(drag.value.from, drag.value.to))}px`,
                width: `${Math.abs(x(drag.value.to) - x(drag.value.from))}px`,
              }}
            />
          )}
        </div>
        <Hint />
        {hidden.value > 0 && <div class="strip-more faint">and {count(hidden.value)} less busy</div>}
      </div>
    </section>
  );
}
