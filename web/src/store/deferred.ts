// Changes that nobody waits for: they are made together, with the next that somebody does, or after a moment. A frame costs the page
// about the same whatever changed in it.
import { batch } from '@preact/signals';

const MOMENT_MS = 150;
let waiting: (() => void)[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;

// Makes what waits, and then `change`, as one.
export function together(change: () => void): void {
  if (timer) clearTimeout(timer);
  timer = null;
  const due = waiting;
  waiting = [];
  batch(() => {
    for (const one of due) one();
    change();
  });
}

export function calmly(change: () => void): void {
  waiting.push(change);
  timer ??= setTimeout(() => together(() => {}), MOMENT_MS);
}
