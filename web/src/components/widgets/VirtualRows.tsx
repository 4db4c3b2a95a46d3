// A scrolling list that renders only the visible rows. All rows have the same height.
import type { ComponentChildren } from 'preact';
import { printing } from '../../store/printing';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

interface Props {
  count: number;
  rowHeight: number;
  render: (index: number) => ComponentChildren;
  head?: ComponentChildren;
  class?: string;
  label: string;
  // Grows when `index` must be scrolled into view.
  scrollTo?: { index: number; stamp: number };
  role?: 'table' | 'list' | 'listbox';
  onKeyDown?: (event: KeyboardEvent) => void;
  onScrolled?: (atEnd: boolean) => void;
}

const OVERSCAN = 8;
// About twenty pages.
const PRINTED = 1000;

export function VirtualRows({
  count,
  rowHeight,
  render,
  head,
  class: className = '',
  label,
  scrollTo,
  role = 'table',
  onKeyDown,
  onScrolled,
}: Props) {
  const view = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ first: 0, last: 60 });

  const measure = () => {
    const element = view.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - OVERSCAN);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + OVERSCAN;
    setRange((old) => (old.first === first && old.last === last ? old : { first, last }));
  };

  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [rowHeight]);

  useLayoutEffect(() => {
    const element = view.current;
    if (!element || !scrollTo || scrollTo.index < 0) return;
    const top = scrollTo.index * rowHeight;
    const room = element.clientHeight;
    if (top < element.scrollTop + 2 * rowHeight || top > element.scrollTop + room - 3 * rowHeight)
      element.scrollTop = Math.max(0, top - room / 2 + rowHeight);
    measure();
  }, [scrollTo?.stamp]);

  // Printed pages do not scroll.
  const whole = printing.value;
  const first = whole ? 0 : Math.min(range.first, Math.max(0, count - 1));
  const last = whole ? Math.min(PRINTED, count) : Math.min(range.last, count);
  const rows = [];
  for (let i = first; i < last; i++) rows.push(render(i));
  return (
    <div
      class={`rows ${className}`}
      ref={view}
      role={role}
      aria-label={label}
      aria-rowcount={count}
      tabIndex={0}
      onScroll={(event) => {
        measure();
        const { scrollTop, clientHeight, scrollHeight } = event.currentTarget;
        onScrolled?.(scrollTop + clientHeight > scrollHeight - rowHeight);
      }}
      onKeyDown={onKeyDown}
    >
      {head}
      <div class="rows-content" style={whole ? {} : { height: `${count * rowHeight}px` }}>
        <div style={whole ? {} : { transform: `translateY(${first * rowHeight}px)` }}>{rows}</div>
      </div>
      {whole && last < count && <p class="faint pad">{count - last} more are not printed.</p>}
    </div>
  );
}
