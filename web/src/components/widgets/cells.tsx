// Cells of a table that VirtualRows renders. `kind` contains additional classes, for example cell-number.
import type { ComponentChildren } from 'preact';
import { view } from '../../store/view';
import { Icon } from './Icon';

const spans = (role: 'cell' | 'columnheader') => (kind: string, content?: ComponentChildren, title?: string) => (
  <span class={`cell ${kind}`} role={role} title={title}>
    {content}
  </span>
);
export const cell = spans('cell');
export const head = spans('columnheader');

// The head of a column by which the table can be sorted. `now` is the current order. Names start at A, numbers at the largest.
export function SortHead({
  name,
  sort,
  now,
  kind,
  title,
  choose,
}: {
  name: string;
  sort: string;
  now: string;
  kind?: string;
  title?: string;
  choose: (ascending: boolean) => void;
}) {
  const { ascending } = view.value;
  const active = now === sort;
  return (
    <span
      role="columnheader"
      class={`cell ${kind ?? ''}`}
      title={title}
      aria-sort={active ? (ascending ? 'ascending' : 'descending') : 'none'}
    >
      <button
        type="button"
        class={`sort ${active ? 'sort-active' : ''}`}
        onClick={() => choose(active ? !ascending : sort === 'name' || sort === 'module')}
      >
        {name}
        {active && <Icon name={ascending ? 'up' : 'down'} />}
      </button>
    </span>
  );
}
