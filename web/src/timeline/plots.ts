// The lines that the time axis can show: counters and health values, as points in time. Pure.
import type { Counters } from '../api/types';
import { bytes, short } from '../text/format';

// A step function: value[i] is valid from time[i] to time[i + 1]; null: unknown.
export interface Line {
  time: number[];
  value: (number | null)[];
}

export interface PlotKind {
  id: string; // in the address: "counter:task-clock", "health:cpu"
  name: string;
  format: (value: number) => string;
}

// A health frame as the server stores it. Values that a machine does not report are absent.
export type Frame = { readonly mono_ns?: number } & Readonly<Record<string, unknown>>;
export type HealthType = 'system' | 'process' | 'network' | 'disk' | 'agent';

interface HealthPlot extends PlotKind {
  type: HealthType;
  // The value for the frames of one round. With `rate`, it is a growing sum, and the line shows how fast the sum grows.
  of: (frames: readonly Frame[]) => number | null;
  rate?: boolean;
}

function at(frame: Frame | undefined, path: string): number | null {
  let value: unknown = frame;
  for (const name of path.split('.'))
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

const first =
  (path: string, factor = 1) =>
  (frames: readonly Frame[]) => {
    const value = at(frames[0], path);
    return value === null ? null : value * factor;
  };
const sum =
  (path: string, factor = 1) =>
  (frames: readonly Frame[]) => {
    const values = frames.map((frame) => at(frame, path)).filter((value) => value !== null);
    return values.length === 0 ? null : values.reduce((a, b) => a + b, 0) * factor;
  };
// The sum over all members of an object of objects, for example interfaces or devices.
const sumOf = (group: string, field: string) => (frames: readonly Frame[]) => {
  const members = frames[0]?.[group];
  if (typeof members !== 'object' || members === null) return null;
  const values = Object.values(members as Record<string, Frame>)
    .map((member) => at(member, field))
    .filter((value) => value !== null);
  return values.length === 0 ? null : values.reduce((a, b) => a + b, 0);
};

const share = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} %`;
const speed = (value: number) => `${bytes(value)}/s`;

export const healthPlots: readonly HealthPlot[] = [
  { id: 'health:cpu', name: 'CPU', format: share, type: 'system', of: first('cpu.overall_pct') },
  { id: 'health:mem', name: 'Memory', format: share, type: 'system', of: first('mem.used_pct') },
  { id: 'health:load', name: 'Load', format: (v) => v.toFixed(2), type: 'system', of: first('load.avg_1m') },
  { id: 'health:temp', name: 'Temperature', format: (v) => `${v.toFixed(0)} °C`, type: 'system', of: first('temp_c') },
  {
    id: 'health:csw',
    name: 'Context switches',
    format: (v) => `${short(v)}/s`,
    type: 'system',
    of: first('context_switches'),
    rate: true,
  },
  { id: 'health:target-cpu', name: 'Target’s CPU', format: share, type: 'process', of: sum('cpu_pct') },
  { id: 'health:target-rss', name: 'Target’s memory', format: bytes, type: 'process', of: sum('rss_kb', 1024) },
  {
    id: 'health:target-threads',
    name: 'Target’s threads',
    format: (v) => String(v),
    type: 'process',
    of: sum('threads'),
  },
  {
    id: 'health:rx',
    name: 'Received',
    format: speed,
    type: 'network',
    of: sumOf('interfaces', 'rx_bytes'),
    rate: true,
  },
  { id: 'health:tx', name: 'Sent', format: speed, type: 'network', of: sumOf('interfaces', 'tx_bytes'), rate: true },
  {
    id: 'health:read',
    name: 'Disk reads',
    format: speed,
    type: 'disk',
    of: sumOf('devices', 'read_bytes'),
    rate: true,
  },
  {
    id: 'health:write',
    name: 'Disk writes',
    format: speed,
    type: 'disk',
    of: sumOf('devices', 'write_bytes'),
    rate: true,
  },
  {
    id: 'health:agent-cpu',
    name: 'Agent’s CPU',
    format: (v) => `${v.toFixed(2)} %`,
    type: 'agent',
    of: first('cpu_pct'),
  },
  { id: 'health:agent-rss', name: 'Agent’s memory', format: bytes, type: 'agent', of: first('rss_kb', 1024) },
];

// The frames of one round (one per process) are within this time.
const ROUND_NS = 5e8;
// A value is valid until the next round. After this many ms without a round, the value is unknown.
const HOLDS_MS = 65_000;

function rounds(frames: readonly Frame[]): Frame[][] {
  const out: Frame[][] = [];
  for (const frame of frames) {
    const last = out.at(-1);
    if (last && (frame.mono_ns ?? 0) - (last[0]!.mono_ns ?? 0) < ROUND_NS) last.push(frame);
    else out.push([frame]);
  }
  return out;
}

export function healthLine(plot: HealthPlot, frames: readonly Frame[], startNs: number): Line {
  const line: Line = { time: [], value: [] };
  let before: { ms: number; value: number | null } | null = null;
  const put = (ms: number, value: number | null) => {
    line.time.push(ms);
    line.value.push(value);
  };
  for (const round of rounds(frames)) {
    const ms = ((round[0]!.mono_ns ?? 0) - startNs) / 1e6;
    const value = plot.of(round);
    if (plot.rate) {
      // The growth since the previous round, drawn over the time between them. If a sum falls, its counter was reset.
      if (before) {
        const grown =
          value === null || before.value === null || value < before.value
            ? null
            : ((value - before.value) * 1000) / Math.max(1, ms - before.ms);
        put(before.ms, grown);
        put(ms, null);
      }
    } else {
      if (before && ms - before.ms > HOLDS_MS) put(before.ms + HOLDS_MS, null);
      put(ms, value);
    }
    before = { ms, value };
  }
  if (before && !plot.rate) put(before.ms + Math.min(HOLDS_MS, 2000), null);
  return tidy(line);
}

// Of two points at the same time, only the later one remains.
function tidy(line: Line): Line {
  const out: Line = { time: [], value: [] };
  line.time.forEach((time, i) => {
    if (out.time.at(-1) === time) out.value[out.value.length - 1] = line.value[i]!;
    else {
      out.time.push(time);
      out.value.push(line.value[i]!);
    }
  });
  return out;
}

// A counter as a rate: per second, or in CPUs if the counter is a clock.
export function counterLine(name: string, counters: Counters): Line {
  const line: Line = { time: [], value: [] };
  const counter = counters.groups[0]?.counters.find((one) => one.name === name);
  if (!counter) return line;
  const { start_ms, end_ms, value } = counter.series;
  const scale = counter.unit === 'ns' ? 1e-6 : 1000;
  value.forEach((v, i) => {
    line.time.push(start_ms[i]!);
    line.value.push((v / Math.max(1e-9, end_ms[i]! - start_ms[i]!)) * scale);
    const next = start_ms[i + 1];
    if (next === undefined || next > end_ms[i]! + 1) {
      line.time.push(end_ms[i]!);
      line.value.push(null);
    }
  });
  return tidy(line);
}

export function counterPlot(name: string, unit: string): PlotKind {
  const format = unit === 'ns' ? (v: number) => `${v.toFixed(2)} CPUs` : (v: number) => `${short(v)}/s`;
  return { id: `counter:${name}`, name, format };
}

export function valueAt(line: Line, ms: number): number | null {
  let low = 0;
  let high = line.time.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line.time[middle]! <= ms) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : line.value[low - 1]!;
}
