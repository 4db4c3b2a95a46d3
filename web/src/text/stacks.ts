// Texts about how user stacks are unwound and how many are whole.
import type { Session, UnwindCounts, UnwindMode, UnwindProcess } from '../api/types';
import { bytes, count, percent } from './format';

export const modeWords: Record<UnwindMode, string> = {
  fp: 'the kernel follows frame pointers',
  hybrid: 'frame pointers; unwind tables where the innermost functions have none',
  dwarf: 'unwind tables, from registers and a copy of the stack',
  lbr: 'the CPU’s records of its last branches',
};

export const stoppedWhy =
  'a frame could not be unwound. Its code has neither unwind tables nor frame pointers, or its stack is elsewhere, as a signal handler’s may be.';

type Ending = 'whole' | 'joined' | 'truncated' | 'open_end' | 'stopped';
// Every stack ends in one of these ways.
export const endings: readonly { key: Ending; name: string; why: string }[] = [
  { key: 'whole', name: 'whole', why: 'The walk reached the outermost frame.' },
  {
    key: 'joined',
    name: 'joined',
    why: 'Deeper than the copied bytes; completed with the outer frames that the thread’s last stacks had at the same place.',
  },
  { key: 'truncated', name: 'truncated', why: 'Outer callers are missing; [truncated] is drawn in their place.' },
  {
    key: 'open_end',
    name: 'open-ended',
    why: 'A chain of frame pointers ended, perhaps before the outermost frame. Unwind tables show it: --unwind dwarf.',
  },
  { key: 'stopped', name: 'stopped', why: `[incomplete] is drawn in place of the callers: ${stoppedWhy}` },
];

export const wholeShare = (counts: UnwindCounts): number =>
  (counts.whole + counts.joined) / Math.max(1, counts.samples);

// "99.8 % whole · 12 joined · 3 truncated". Joined stacks count as whole. A share below 1 never shows as 100 %.
export function wholeness(counts: UnwindCounts): string {
  if (counts.samples === 0) return '';
  const share = wholeShare(counts);
  // Frame-pointer chains alone never show that they are whole.
  const first: Ending = share === 0 && counts.open_end > 0 ? 'open_end' : 'whole';
  const part = first === 'whole' ? share : counts.open_end / counts.samples;
  const name = endings.find(({ key }) => key === first)!.name;
  const parts = [part === 1 ? `all ${name}` : `${percent(Math.min(part, 0.999), 1)} ${name}`];
  for (const { key, name } of endings)
    if (key !== 'whole' && key !== first && counts[key] > 0) parts.push(`${count(counts[key])} ${name}`);
  return parts.join(' · ');
}

// The modes in use, after the requested mode if that differs: "dwarf", "auto: dwarf + fp".
export function modesOf(session: {
  unwind: string;
  unwind_processes?: readonly Pick<UnwindProcess, 'mode' | 'samples'>[];
}): string {
  const processes = session.unwind_processes ?? [];
  const samples = new Map<string, number>();
  for (const { mode, samples: n } of processes) samples.set(mode, (samples.get(mode) ?? 0) + n);
  const chosen = [...samples].sort((a, b) => b[1] - a[1]).map(([mode]) => mode);
  if (chosen.length === 0 || (chosen.length === 1 && chosen[0] === session.unwind)) return session.unwind;
  return session.unwind ? `${session.unwind}: ${chosen.join(' + ')}` : chosen.join(' + ');
}

// The size of stack copies and the maximum depth, as far as they are known.
export function settingsOf(session: Pick<Session, 'stack_bytes' | 'max_depth'>): string {
  const parts = [];
  if (session.stack_bytes > 0) parts.push(`copies of up to ${bytes(session.stack_bytes)} a stack`);
  if (session.max_depth > 0) parts.push(`at most ${count(session.max_depth)} frames`);
  return parts.join(', ');
}

// Why callers can be missing, and the remedies. The last one is the kernel's limit for frame-pointer chains.
export const truncationRemedies: readonly { cause: string; remedy: string }[] = [
  { cause: 'deeper than the copy of the stack', remedy: '--stack-size 65528' },
  { cause: 'more frames than the limit', remedy: '--max-depth 4096' },
  { cause: 'more frames than the kernel follows frame pointers', remedy: 'sysctl -w kernel.perf_event_max_stack=1024' },
];
