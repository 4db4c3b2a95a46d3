// The other side of a comparison, and its form in the address: a view of a session, as it was when it was chosen. Pure.
export interface Baseline {
  session: string; // never empty: what is followed changes, what it is compared with does not
  pids: readonly number[];
  tids: readonly number[];
  start: number | null; // ms since that session's start
  end: number | null;
}

// What weights are divided by: all weight of their side, or the seconds that it covers.
export type Normalise = 'total' | 'time';
// Which side's weights the widths of the flame graph are.
export type Width = 'view' | 'baseline';
// Red grew and blue shrank, or hues that stand apart with any colour vision.
export type Contrast = 'red-blue' | 'orange-purple';
export type Change = 'all' | 'new' | 'gone' | 'grew' | 'shrank';

function numbers(text: string | null): number[] {
  return (text ?? '')
    .split(',')
    .filter(Boolean)
    .map(Number)
    .filter((n) => Number.isInteger(n) && n >= 0);
}

function time(text: string | null): number | null {
  const value = text ? Number(text) : NaN;
  return Number.isFinite(value) && value >= 0 ? value : null;
}

export function parseBaseline(params: URLSearchParams): Baseline | null {
  const session = params.get('base');
  if (!session) return null;
  return {
    session,
    pids: numbers(params.get('base_pid')),
    tids: numbers(params.get('base_tid')),
    start: time(params.get('base_start')),
    end: time(params.get('base_end')),
  };
}

export function putBaseline(put: (name: string, value: string) => void, baseline: Baseline | null): void {
  if (!baseline) return;
  put('base', baseline.session);
  put('base_pid', baseline.pids.join(','));
  put('base_tid', baseline.tids.join(','));
  put('base_start', baseline.start === null ? '' : String(baseline.start));
  put('base_end', baseline.end === null ? '' : String(baseline.end));
}
