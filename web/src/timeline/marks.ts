// Texts for the marks on the time axis. Pure.
import type { Mark } from '../api/types';
import { count, duration } from '../text/format';
import { lossWords } from '../text/loss';

const many: Record<'begin' | 'exec' | 'exit', string> = {
  begin: 'processes began',
  exec: 'programs were started (exec)',
  exit: 'processes ended',
};
const one: Record<'begin' | 'exec' | 'exit', string> = { begin: 'began', exec: 'exec', exit: 'ended' };

export function markText(mark: Mark): string {
  switch (mark.kind) {
    case 'begin':
    case 'exec':
    case 'exit':
      if (mark.count > 1)
        return `${count(mark.count)} ${many[mark.kind]}, first ${mark.name ?? '?'} (${mark.pid ?? '?'})`;
      return `${mark.name ?? '?'} (${mark.pid ?? '?'}) ${one[mark.kind]}`;
    case 'loss': {
      const words = lossWords[(mark.reason ?? 'unknown') as keyof typeof lossWords] ?? lossWords.unknown;
      if (mark.reason === 'batches_missing') return 'No samples: the session file is damaged';
      const what = mark.lost ? `${count(mark.count)} samples lost` : `${count(mark.count)} ×`;
      return `${what}: ${words.name}${mark.event ? ` (${mark.event})` : ''}`;
    }
    case 'change': {
      const gap = mark.end_ms - mark.start_ms;
      const times = mark.count > 1 ? `${count(mark.count)} changes, first: ` : 'Changed: ';
      return `${times}${mark.name ?? 'the recording'}${gap > 0 ? `; nothing was sampled for ${duration(gap)}` : ''}`;
    }
    case 'reconnect': {
      const times = mark.count > 1 ? `${count(mark.count)} times ` : '';
      return `The agent was away ${times}for ${duration(mark.end_ms - mark.start_ms)}; its samples arrived later`;
    }
  }
}

// Marks within `reach` ms of a time, the nearest first.
export function marksAt(marks: readonly Mark[], ms: number, reach: number): Mark[] {
  const distance = (mark: Mark) => Math.max(0, mark.start_ms - ms, ms - mark.end_ms);
  return marks.filter((mark) => distance(mark) <= reach).sort((a, b) => distance(a) - distance(b));
}
