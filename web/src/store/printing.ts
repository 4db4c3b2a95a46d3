// True while the page is being put on paper: everything is light, of the paper's width, and whole.
import { signal } from '@preact/signals';

export const printing = signal(false);

function set(now: boolean): void {
  // The class first: what is measured for the paper follows from it.
  document.documentElement.classList.toggle('is-printing', now);
  printing.value = now;
}

export function listenForPrinting(): void {
  addEventListener('beforeprint', () => set(true));
  addEventListener('afterprint', () => set(false));
  const paper = matchMedia('print');
  paper.addEventListener('change', () => set(paper.matches));
}
