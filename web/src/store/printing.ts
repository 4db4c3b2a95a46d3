// True while the page is printed: with the light theme, in the width of the paper, and with rows that are not in view.
import { signal } from '@preact/signals';

export const printing = signal(false);

function set(now: boolean): void {
  // Set the class first, because measurements for the paper depend on it.
  document.documentElement.classList.toggle('is-printing', now);
  printing.value = now;
}

export function listenForPrinting(): void {
  addEventListener('beforeprint', () => set(true));
  addEventListener('afterprint', () => set(false));
  const paper = matchMedia('print');
  paper.addEventListener('change', () => set(paper.matches));
}
