// Changes that are not urgent. They are applied together with the next urgent change, or after a short delay.
// The cost of a frame hardly depends on how much changed.
import { batch } from '@preact/signals';

const MOMENT_MS = 150;
let waiting: (() => void)[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;

// Applies the deferred changes and then `change`, in one batch.
export function withDeferred(change: () => void): void {
  if (timer) clearTimeout(timer);
  timer = null;
  const due = waiting;
  waiting = [];
  batch(() => {
    for (const one of due) one();
    change();
  });
}

export function defer(change: () => void): void {
  waiting.push(change);
  timer ??= setTimeout(() => withDeferred(() => {}), MOMENT_MS);
}
