// The baseline of a comparison, and its form in the address. It is a view of a session that does not follow later changes. Pure.
import { numbers, time } from './codec';

export interface Baseline {
  session: string; // never empty: unlike the view, a baseline does not follow the live session
  pids: readonly number[];
  tids: readonly number[];
  start: number | null; // ms since that session's start
  end: number | null;
}

// The divisor of weights: the total weight of their side, or the seconds that the side covers.
export const normalisations = ['total', 'time'] as const;
export type Normalise = (typeof normalisations)[number];
// The side whose weights determine the widths of the flame graph.
export const widths = ['view', 'baseline'] as const;
export type Width = (typeof widths)[number];
// The colors of frames that grew and shrank. Orange and purple are distinct with any color vision.
export const contrasts = ['red-blue', 'orange-purple'] as const;
export type Contrast = (typeof contrasts)[number];
export const changes = ['all', 'new', 'gone', 'grew', 'shrank'] as const;
export type Change = (typeof changes)[number];

export function parseBaseline(params: URLSearchParams): Baseline | null {
  const session = params.get('base');
  if (!session) return null;
  const written = (name: string) => params.get(name) ?? '';
  return {
    session,
    pids: numbers.read(written('base_pid')) ?? [],
    tids: numbers.read(written('base_tid')) ?? [],
    start: time.read(written('base_start')) ?? null,
    end: time.read(written('base_end')) ?? null,
  };
}

export function putBaseline(put: (name: string, value: string) => void, baseline: Baseline | null): void {
  if (!baseline) return;
  const putIf = (name: string, value: string | null) => value !== null && put(name, value);
  put('base', baseline.session);
  putIf('base_pid', numbers.write(baseline.pids));
  putIf('base_tid', numbers.write(baseline.tids));
  putIf('base_start', time.write(baseline.start));
  putIf('base_end', time.write(baseline.end));
}
