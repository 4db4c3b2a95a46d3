// Samples over time. Dragging across it chooses the range that every view shows; a double click shows all again.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { timeline } from '../store/data';
import { session } from '../store/session';
import { theme } from '../store/theme';
import { setView, view } from '../store/view';
import { axisTime, count, duration, ticks } from '../text/format';
import { bars, brush } from '../text/strip';

const HEIGHT = 40;
const BAR = 3; // CSS pixels, gap included

interface Scale {
  from: number;
  to: number;
}

function paint(canvas: HTMLCanvasElement, samples: readonly number[], style: CSSStyleDeclaration): void {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.round(HEIGHT * ratio);
  const context = canvas.getContext('2d');
  if (!context) return;
  const step = Math.max(1, Math.round(BAR * ratio));
  const { heights } = bars(samples, Math.floor(canvas.width / step));
  const columns = heights.length;
  context.fillStyle = style.getPropertyValue('--strip-bar');
  for (let i = 0; i < columns; i++) {
    if (heights[i] === 0) continue;
    const left = Math.round((i * canvas.width) / columns);
    const right = Math.round(((i + 1) * canvas.width) / columns);
    const height = Math.max(ratio, heights[i]! * (canvas.height - 4 * ratio));
    context.fillRect(left, canvas.height - height, Math.max(1, right - left - Math.round(ratio)), height);
  }
}

export function TimeStrip() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const drag = useSignal<{ from: number; to: number } | null>(null);
  const hover = useSignal<number | null>(null);
  const data = timeline.data.value;
  const samples = data?.samples ?? [];
  const scale: Scale = { from: data?.start_ms ?? 0, to: (data?.start_ms ?? 0) + (data?.slice_ms ?? 0) * samples.length };
  const span = scale.to - scale.from;

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const draw = () => paint(element, samples, getComputedStyle(document.documentElement));
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    return () => observer.disconnect();
  }, [data, theme.value]);

  const v = view.value;
  const position = (ms: number) => `${span > 0 ? Math.min(100, Math.max(0, ((ms - scale.from) / span) * 100)) : 0}%`;
  const chosen = v.start !== null || v.end !== null ? { start: v.start ?? scale.from, end: v.end ?? scale.to } : null;
  const at = (event: PointerEvent) => event.clientX - area.current!.getBoundingClientRect().left;
  const finish = (event: PointerEvent) => {
    const dragged = drag.value;
    drag.value = null;
    if (!dragged || span <= 0) return;
    const range = brush(dragged.from, at(event), area.current!.clientWidth, scale.from, scale.to);
    if (range) setView(range);
  };
  const slice = hover.value !== null && span > 0 ? Math.floor((hover.value / area.current!.clientWidth) * samples.length) : -1;
  const whole = session.value?.retention?.whole_from_ms ?? 0;

  return (
    <section class="strip" aria-label="Samples over time">
      <div
        class="strip-area"
        ref={area}
        id="time-strip"
        title={chosen ? 'Double click to show all times' : 'Drag to choose a range of time'}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          area.current!.setPointerCapture(event.pointerId);
          drag.value = { from: at(event), to: at(event) };
        }}
        onPointerMove={(event) => {
          hover.value = at(event);
          if (drag.value) drag.value = { ...drag.value, to: at(event) };
        }}
        onPointerLeave={() => (hover.value = null)}
        onPointerUp={finish}
        onPointerCancel={() => (drag.value = null)}
        onDblClick={() => setView({ start: null, end: null })}
      >
        <canvas ref={canvas} aria-hidden="true" />
        {whole > scale.from && <div class="strip-coarse" style={{ width: position(whole) }} title="Older than what is kept in full detail" />}
        {chosen && !drag.value && (
          <>
            <div class="strip-shade" style={{ left: '0', width: position(chosen.start) }} />
            <div class="strip-shade" style={{ left: position(chosen.end), right: '0' }} />
            <div class="strip-range" style={{ left: position(chosen.start), width: `calc(${position(chosen.end)} - ${position(chosen.start)})` }} />
          </>
        )}
        {drag.value && (
          <div class="strip-range" style={{ left: `${Math.min(drag.value.from, drag.value.to)}px`, width: `${Math.abs(drag.value.to - drag.value.from)}px` }} />
        )}
        {slice >= 0 && slice < samples.length && (
          <div class={`strip-hint ${slice > samples.length / 2 ? 'strip-hint-left' : ''}`} style={{ left: `${hover.value}px` }}>
            {duration(scale.from + slice * data!.slice_ms)} · {count(samples[slice]!)} samples
          </div>
        )}
      </div>
      <div class="strip-axis" aria-hidden="true">
        {ticks(scale.from, scale.to, 10).map((ms) => (
          <span key={ms} style={{ left: position(ms) }}>
            {axisTime(ms)}
          </span>
        ))}
      </div>
    </section>
  );
}
