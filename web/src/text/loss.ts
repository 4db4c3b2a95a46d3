// Texts for the reasons why samples are missing or have less detail.
import type { Loss } from '../api/types';
import { count, duration } from './format';

export const lossWords: Record<Loss['reason'], { name: string; why: string }> = {
  unknown: { name: 'Unknown', why: 'The reason was not recorded.' },
  ring_full: {
    name: 'Kernel buffer full',
    why: 'The agent could not read fast enough. Lower the frequency or allow larger buffers.',
  },
  throttled: {
    name: 'Throttled by the kernel',
    why: 'The kernel limits how much time sampling may take. Lower the frequency.',
  },
  spool_full: { name: 'Agent’s memory full', why: 'The server was away for longer than the agent can keep samples.' },
  queue_full: { name: 'Agent overloaded', why: 'Samples arrived faster than they could be processed.' },
  stack_truncated: {
    name: 'Stack cut',
    why: 'Outer callers are missing; [truncated] is drawn in their place. Copy more of the stack (--stack-size 65528), allow more frames (--max-depth 4096), and where frame pointers are followed raise kernel.perf_event_max_stack on the target.',
  },
  maps_lost: {
    name: 'Mappings missed',
    why: 'Records of loaded files were lost, so some addresses could not be named.',
  },
  unknown_process: { name: 'Process gone', why: 'The process ended before its mappings could be read.' },
  time_coarsened: { name: 'Time coarsened', why: 'Older samples were put into wider slices of time to save memory.' },
  other_server: { name: 'Kept elsewhere', why: 'Another server has this part of the recording.' },
  batches_missing: {
    name: 'Session file damaged',
    why: 'These samples refer to stacks or threads in a damaged part of the session file, or in batches that never arrived.',
  },
  thread_state_unknown: {
    name: 'Thread state unknown',
    why: 'Context-switch records were lost. The state of each thread is unknown until its next record. Give the agent larger buffers (--ring-pages).',
  },
  memory_limit: {
    name: 'Dropped from memory',
    why: 'The limit of samples in memory was reached; they are still on disk.',
  },
};

// The number of lost samples, or the known part of it if the file is damaged.
export const lostText = (lost: number, atLeast = false): string =>
  !atLeast ? count(lost) : lost === 0 ? 'unknown' : `at least ${count(lost)}`;

// The amount, in the unit of the reason.
export const amountText = (loss: Pick<Loss, 'reason' | 'count'>): string =>
  loss.reason === 'thread_state_unknown' ? duration(loss.count / 1e6) : count(loss.count);

export interface LossSum {
  reason: Loss['reason'];
  count: number;
  lost: boolean;
}

// One entry per reason, the largest first. Lost samples precede samples with less detail.
export function sumLosses(losses: readonly Loss[]): LossSum[] {
  const sums = new Map<string, LossSum>();
  for (const loss of losses) {
    const key = `${loss.reason}/${loss.lost}`;
    const sum = sums.get(key) ?? { reason: loss.reason, count: 0, lost: loss.lost };
    sum.count += loss.count;
    sums.set(key, sum);
  }
  return [...sums.values()].sort((a, b) => Number(b.lost) - Number(a.lost) || b.count - a.count);
}
