// Formats numbers for display.

const grouped = new Intl.NumberFormat('en-US');

export function count(value: number): string {
  return grouped.format(Math.round(value));
}

// Three digits and a unit prefix: 999, 1.23 k, 45.6 M.
export function short(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  const units = ['k', 'M', 'G', 'T', 'P'];
  let scaled = value;
  let unit = -1;
  do {
    scaled /= 1000;
    unit++;
  } while (Math.abs(scaled) >= 999.5 && unit < units.length - 1);
  return `${figures(scaled)} ${units[unit]}`;
}

function figures(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

// 12.3 %. A nonzero share never shows as a bare 0.
export function percent(share: number, digits = 1): string {
  if (!Number.isFinite(share)) return '–';
  const value = share * 100;
  const smallest = 10 ** -digits;
  if (value > 0 && value < smallest / 2) return `<${smallest.toFixed(digits)} %`;
  return `${value.toFixed(digits)} %`;
}

export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  if (ms === 0) return '0 s';
  if (ms < 1) return `${figures(ms * 1000)} µs`;
  if (ms < 1000) return `${figures(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(seconds / 60);
  const rest = Math.floor(seconds % 60);
  if (minutes < 60) return `${minutes} min ${String(rest).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

export function bytes(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let scaled = value;
  let unit = 0;
  while (scaled >= 1023.5 && unit < units.length - 1) {
    scaled /= 1024;
    unit++;
  }
  return `${unit === 0 ? Math.round(scaled) : figures(scaled)} ${units[unit]}`;
}

// A weight in the unit of its event.
export function weight(value: number, unit: string): string {
  if (unit === 'ns') return duration(value / 1e6);
  if (unit === 'bytes') return bytes(value);
  const number_ = short(value);
  return unit ? `${number_} ${unit}` : number_;
}

// The same, with the thread state for events that measure time away from the CPU.
export function weightOf(event: string, value: number, unit: string): string {
  const state = { 'off-cpu': ' blocked', 'run-queue': ' runnable', 'io-wait': ' in I/O wait', 'woken-by': ' asleep' }[
    event
  ];
  return weight(value, unit) + (state ?? '');
}

// Local date and time of an ISO string. `now` determines whether the date is omitted.
export function clock(iso: string, now = new Date()): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return '–';
  const two = (n: number) => String(n).padStart(2, '0');
  const hours = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  if (time.toDateString() === now.toDateString()) return `today ${hours}`;
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${hours}`;
}

// The last part of a path, and the folder before it.
export function splitPath(path: string): { folder: string; file: string } {
  const cut = path.lastIndexOf('/');
  return { folder: path.slice(0, cut + 1), file: path.slice(cut + 1) };
}

// Positions of axis ticks: round steps, at most `most` of them.
export function ticks(from: number, to: number, most: number): number[] {
  const span = to - from;
  if (!(span > 0) || most < 1) return [];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? rough;
  const out: number[] = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) out.push(i * step);
  return out;
}

// The label of a tick, without unneeded digits.
export function axisTime(ms: number): string {
  const trim = (value: number) => String(Math.round(value * 1000) / 1000);
  if (ms === 0) return '0';
  if (ms < 1000) return `${trim(ms)} ms`;
  if (ms < 60_000) return `${trim(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
