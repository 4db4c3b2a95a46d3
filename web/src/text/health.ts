// Tables of health data: growth per second between the first and the last frame of a range. Pure.
import type { HealthFrame } from '../api/types';

export interface Speed {
  name: string;
  values: Record<string, number | null>; // per second; null: missing in the first frame, or the value was reset
}

type Fields = Record<string, unknown>;
const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);

function grown(
  before: Fields,
  after: Fields,
  names: readonly string[],
  seconds: number,
): Record<string, number | null> {
  const out: Record<string, number | null> = {};
  for (const name of names) {
    const a = number(before[name]);
    const b = number(after[name]);
    out[name] = a === null || b === null || b < a || seconds <= 0 ? null : (b - a) / seconds;
  }
  return out;
}

// Members of an object of objects (interfaces, devices), as in the last frame.
export function speeds(frames: readonly HealthFrame[], group: string, names: readonly string[]): Speed[] {
  const last = frames.at(-1);
  if (!last) return [];
  const first = frames[0]!;
  const seconds = (last.mono_ns - first.mono_ns) / 1e9;
  const before = fields(first[group]);
  return Object.entries(fields(last[group])).map(([name, after]) => ({
    name,
    values: grown(fields(before[name]), fields(after), names, seconds),
  }));
}

export interface ThreadUse {
  pid: number;
  tid: number;
  comm: string;
  state: string;
  cpuPercent: number | null;
}

// CPU time of the threads in the newest frame of their process, busiest first.
export function threadUse(frames: readonly HealthFrame[]): ThreadUse[] {
  const byProcess = new Map<number, HealthFrame[]>();
  for (const frame of frames) {
    const pid = number(frame['pid']);
    if (pid !== null) byProcess.set(pid, [...(byProcess.get(pid) ?? []), frame]);
  }
  const newest = frames.at(-1)?.mono_ns ?? 0;
  const out: ThreadUse[] = [];
  for (const [pid, list] of byProcess) {
    const last = list.at(-1)!;
    if (newest - last.mono_ns > 1e9) continue; // ended
    const ticks = (frame: HealthFrame) =>
      new Map(
        (Array.isArray(frame['threads']) ? frame['threads'] : []).map((thread: unknown) => [
          number(fields(thread)['tid']) ?? 0,
          fields(thread),
        ]),
      );
    const before = ticks(list[0]!);
    const seconds = (last.mono_ns - list[0]!.mono_ns) / 1e9;
    const perSecond = number(last['clk_tck']) ?? 100;
    for (const [tid, thread] of ticks(last)) {
      const use = grown(before.get(tid) ?? {}, thread, ['ticks'], seconds)['ticks'] ?? null;
      out.push({
        pid,
        tid,
        comm: String(thread['comm'] ?? ''),
        state: String(thread['state'] ?? ''),
        cpuPercent: use === null ? null : (use / perSecond) * 100,
      });
    }
  }
  return out.sort((a, b) => (b.cpuPercent ?? -1) - (a.cpuPercent ?? -1));
}
