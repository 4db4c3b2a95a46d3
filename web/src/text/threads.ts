// Texts of the threads table. Pure.
import type { ThreadRow, ThreadStates } from '../api/types';
import { percent } from './format';

// The source of a thread's CPU time. The cell contains only the mark.
const sources: Record<ThreadRow['cpu_from'], { mark: string; why: string }> = {
  counted: { mark: '', why: 'its own task-clock, counted' },
  clock_samples: { mark: '~', why: 'the time that its samples of a clock stand for' },
  share: {
    mark: '≈',
    why: 'its part of all samples, of the task-clock of the whole target; count by thread (Counters) to see it',
  },
  none: { mark: '', why: 'unknown: no clock was sampled or counted' },
};

export const cpuText = (row: Pick<ThreadRow, 'cpu_percent' | 'cpu_from'>): string =>
  row.cpu_percent === null ? '–' : `${sources[row.cpu_from].mark}${percent(row.cpu_percent / 100)}`;

export const cpuTitle = (row: Pick<ThreadRow, 'cpu_from'>): string =>
  `Of one CPU, in the chosen time: ${sources[row.cpu_from].why}`;

// The source that all rows of the table share, or ''.
export function cpuSource(rows: readonly Pick<ThreadRow, 'cpu_from'>[]): string {
  const kinds = new Set(rows.map((row) => row.cpu_from));
  const [only] = kinds;
  if (kinds.size !== 1 || only === undefined) return '';
  return {
    counted: 'CPU as counted',
    clock_samples: 'CPU by samples of a clock',
    share: 'CPU by shares of samples',
    none: 'CPU not known',
  }[only];
}

const states: Record<ThreadRow['state'], string> = {
  alive: 'Has not ended. The agent reports its state when the health of threads is read (Counters, Threads).',
  running: 'Runs, or waits for a CPU',
  sleeping: 'Waits for something that can be interrupted',
  waiting: 'Waits in the kernel, as for a disk',
  stopped: 'Stopped, or traced',
  ended: 'Has ended',
};
export const stateTitle = (state: ThreadRow['state']): string => states[state];

// The outline of bars as one area path; the value `most` has the height of the box.
export function barsPath(values: readonly number[], most: number, width: number, height: number): string {
  if (values.length === 0 || !(most > 0)) return '';
  const step = width / values.length;
  const number = (value: number) => String(Math.round(value * 100) / 100);
  let path = `M0 ${height}`;
  values.forEach((value, i) => {
    const top = number(height - (Math.min(value, most) / most) * height);
    path += `V${top}H${number((i + 1) * step)}`;
  });
  return `${path}V${height}Z`;
}

// Shortens ids to the length that `docker ps` shows. Names are unchanged.
export const shortId = (id: string): string => (/^[0-9a-f]{32,}$/.test(id) ? id.slice(0, 12) : id);

export const placeText = (row: Pick<ThreadRow, 'container_id' | 'pod_uid' | 'cgroup'>): string =>
  [
    row.container_id && `container ${shortId(row.container_id)}`,
    row.pod_uid && `pod ${row.pod_uid}`,
    row.cgroup && `cgroup ${row.cgroup}`,
  ]
    .filter(Boolean)
    .join(', ');

// The thread states, from the bottom of the chart to the top.
export const threadStates = [
  { name: 'run', text: 'Run', title: 'On a CPU' },
  { name: 'runnable', text: 'Runnable', title: 'Waits for a CPU' },
  { name: 'blocked', text: 'Blocked', title: 'Asleep' },
  { name: 'io_wait', text: 'I/O wait', title: 'Waits for a device' },
] as const;

// What is missing from the thread states of a recording with these events; '' if nothing is.
export const wakeUpNote = (events: readonly { name: string }[]): string =>
  events.some(({ name }) => name === 'woken-by')
    ? ''
    : 'Wake-up latency counts as Blocked. Record woken-by as well to count it as Runnable';

// The slices of each state, added to those of the states below.
export function stackedStates(row: ThreadStates['threads'][number]): number[][] {
  let below: readonly number[] = [];
  return threadStates.map(({ name }) => {
    const sum = (row[`${name}_slices`] ?? []).map((value, i) => value + (below[i] ?? 0));
    below = sum;
    return sum;
  });
}
