// The arithmetic of the time strip: slices of samples to bars, and pointer positions to times.
export interface StripBars {
  heights: Float32Array; // 0..1, one a bar
  most: number; // samples of a bar of height 1
}

// Adds up as many neighbouring slices as it takes to have at most `limit` bars. Every bar stands for the same time, since bars of
// one slice beside bars of two would draw a pattern that is not in the data.
export function bars(samples: readonly number[], limit: number): StripBars {
  const group = Math.max(1, Math.ceil(samples.length / Math.max(1, limit)));
  const heights = new Float32Array(Math.ceil(samples.length / group));
  samples.forEach((value, i) => (heights[Math.floor(i / group)]! += value));
  const most = heights.reduce((a, b) => Math.max(a, b), 0);
  if (most > 0) for (let i = 0; i < heights.length; i++) heights[i]! /= most;
  return { heights, most };
}

export interface Range {
  start: number;
  end: number;
}

// Two pointer positions as a range of ms, whole and inside the session; null when they are too close to mean one.
export function brush(a: number, b: number, width: number, from: number, to: number): Range | null {
  if (Math.abs(a - b) < 4 || !(width > 0)) return null;
  const time = (x: number) => from + (Math.min(width, Math.max(0, x)) / width) * (to - from);
  const start = Math.floor(time(Math.min(a, b)));
  const end = Math.ceil(time(Math.max(a, b)));
  return end > start ? { start, end } : null;
}
