// All functions with their self and total weights.
import { computed, effect, signal } from '@preact/signals';
import type { FunctionRow } from '../../api/types';
import { useState } from 'preact/hooks';
import { compilePattern, escapePattern } from '../../model/pattern';
import { functions } from '../../store/data';
import type { SortKey } from '../../model/view_state';
import { saveFile } from '../../store/save';
import { session } from '../../store/session';
import { isFiltered, openCallers, openSource, setView, view } from '../../store/view';
import { count, percent, splitPath, weight } from '../../text/format';
import { FunctionTable, functionsCsv, grouped, modulesOf, type Group, type Item } from '../../text/functions';
import { FunctionsFilter } from './FunctionsFilter';
import { Button } from '../widgets/Button';
import { cell, head, SortHead } from '../widgets/cells';
import { Choice } from '../widgets/Choice';
import { ExportMenu } from '../widgets/ExportMenu';
import { Icon } from '../widgets/Icon';
import { Failure, Message } from '../widgets/Message';
import { NotRefreshed } from '../widgets/NotRefreshed';
import { Share } from '../widgets/Share';
import { VirtualRows } from '../widgets/VirtualRows';

const ROW_HEIGHT = 28;

const wanted = computed(() => compilePattern(view.value.filter));
const order = computed(() => `${view.value.sort}/${view.value.ascending}`);
const module = computed(() => view.value.module);
const grouping = computed(() => view.value.grouping);

const table = computed(() => new FunctionTable(functions.data.value?.functions ?? []));
const modules = computed(() => modulesOf(table.value.rows));

const rows = computed<FunctionRow[]>(() => {
  const [sort, ascending] = order.value.split('/') as [SortKey, string];
  return table.value.select(sort, ascending === 'true', wanted.value, module.value);
});

const closed = signal<ReadonlySet<string>>(new Set());
const items = computed<Item[] | null>(() =>
  grouping.value === 'none' ? null : grouped(rows.value, grouping.value, closed.value),
);

const whenIdle = (run: () => void) =>
  'requestIdleCallback' in window ? requestIdleCallback(run, { timeout: 500 }) : setTimeout(run, 200);

// Prepare the other orders and the filter while the browser is idle.
effect(() => {
  const next = table.value;
  if (next.rows.length < 5000) return;
  for (const key of ['total', 'name', 'module'] as const) whenIdle(() => table.peek() === next && next.order(key));
  whenIdle(() => table.peek() === next && next.prepareFilter());
});

function toggle(group: string): void {
  const next = new Set(closed.value);
  if (!next.delete(group)) next.add(group);
  closed.value = next;
}

const keyOf = (row: FunctionRow) => `${row.name}\n${row.module}\n${row.kind}`;
const selected = signal<FunctionRow | null>(null);
// Compares by value, so that it also finds the function in a later answer.
const isSelected = (row: FunctionRow) => {
  const chosen = selected.value;
  return chosen !== null && row.name === chosen.name && row.module === chosen.module && row.kind === chosen.kind;
};
const chosenRow = computed(() => (selected.value ? rows.value.find(isSelected) : undefined));
const scroll = signal({ index: -1, stamp: 0 });

function choose(row: FunctionRow | undefined): void {
  if (!row) return;
  selected.value = row;
  setView({ search: `^${escapePattern(row.name)}$` }, 'replace');
}

const showInFlame = (row: FunctionRow) => setView({ tab: 'flame', search: `^${escapePattern(row.name)}$` });

function keys(event: KeyboardEvent): void {
  const shown = items.value;
  const list = shown ? shown.flatMap((item) => (item.kind === 'row' ? [item.row] : [])) : rows.value;
  const at = list.findIndex(isSelected);
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
  const row = list[at];
  if (event.key in steps && event.target === event.currentTarget) {
    const next = list[Math.min(list.length - 1, Math.max(0, at + steps[event.key]!))];
    choose(next);
    const index = shown ? shown.findIndex((item) => item.kind === 'row' && item.row === next) : list.indexOf(next!);
    scroll.value = { index, stamp: scroll.value.stamp + 1 };
  } else if (event.target !== event.currentTarget) return;
  else if (event.key === 'Enter' && row) showInFlame(row);
  else if (event.key === 'c' && row) openCallers(row.name, row.module);
  else if (event.key === 's' && row) openSource(row.file, row.line, row.name, row.module);
  else return;
  event.preventDefault();
}

const Head = ({ name, sort }: { name: string; sort: SortKey }) => (
  <SortHead name={name} sort={sort} now={view.value.sort} choose={(ascending) => setView({ sort, ascending })} />
);

function GroupHead({ group, unit }: { group: Group; unit: string }) {
  const open = !closed.value.has(group.name);
  const by = grouping.value === 'file' ? 'file' : 'module';
  return (
    <div class="row function-row group-row" role="row">
      {cell('', <Share value={group.selfPercent / 100} />)}
      {cell('cell-number', weight(group.self, unit))}
      <span class="cell group-name" role="cell">
        <button
          type="button"
          class="group-toggle"
          aria-expanded={open}
          title={group.name}
          onClick={() => toggle(group.name)}
        >
          <Icon name={open ? 'down' : 'right'} />
          <strong class="ellipsis">{group.name || `No ${by} known`}</strong>
          <span class="faint">
            {count(group.count)} {group.count === 1 ? 'function' : 'functions'}, {percent(group.selfPercent / 100)} self
          </span>
        </button>
      </span>
    </div>
  );
}

// The actions of a row. Only the hovered or chosen row has them, which keeps the number of elements small.
function RowActions({ row }: { row: FunctionRow }) {
  return (
    <span class="row-actions">
      <button
        type="button"
        title="Show in the flame graph (Enter)"
        aria-label={`Show ${row.name} in the flame graph`}
        onClick={() => showInFlame(row)}
      >
        <Icon name="flame" />
      </button>
      <button
        type="button"
        title="Callers and callees (C)"
        aria-label={`Callers and callees of ${row.name}`}
        onClick={() => openCallers(row.name, row.module)}
      >
        <Icon name="flip" />
      </button>
      {row.file && (
        <button
          type="button"
          title="Open source and assembly (S)"
          aria-label={`Open the source of ${row.name}`}
          onClick={() => openSource(row.file, row.line, row.name, row.module)}
        >
          <Icon name="code" />
        </button>
      )}
    </span>
  );
}

function Row({ row, unit }: { row: FunctionRow; unit: string }) {
  const active = isSelected(row);
  const [pointed, setPointed] = useState(false);
  return (
    <div
      class={`row function-row ${active ? 'row-selected' : ''}`}
      role="row"
      aria-selected={active}
      onPointerEnter={() => setPointed(true)}
      onPointerLeave={() => setPointed(false)}
      onClick={() => choose(row)}
      onDblClick={() => openSource(row.file, row.line, row.name, row.module)}
    >
      {cell('', <Share value={row.self_percent / 100} />)}
      {cell('cell-number', weight(row.self, unit), `${count(row.self_samples)} samples`)}
      {cell('', <Share value={row.total_percent / 100} tone="total" />)}
      {cell('cell-number', weight(row.total, unit), `${count(row.total_samples)} samples`)}
      <span class="cell cell-name" role="cell" title={row.name}>
        <span class={`swatch kind-${row.kind}`} />
        <span class="ellipsis">{row.name}</span>
        {(pointed || active) && <RowActions row={row} />}
      </span>
      {cell('faint ellipsis', row.module, row.module)}
      <span class="cell faint ellipsis" role="cell" title={row.file}>
        {row.file && `${splitPath(row.file).file}${row.line > 0 ? `:${row.line}` : ''}`}
      </span>
    </div>
  );
}

export function FunctionsView() {
  const data = functions.data.value;
  const error = functions.error.value;
  if (!data || data.functions.length === 0) {
    if (error && !data) return <Failure error={error} />;
    if (functions.loading.value) return <Message title="Loading the functions" busy />;
    return <Message title={isFiltered.value ? 'No samples match the filter' : 'No samples yet'} />;
  }
  const list = rows.value;
  const shown = items.value;
  const chosen = chosenRow.value;
  return (
    <section class={`view ${functions.loading.value ? 'is-stale' : ''}`}>
      <div class="toolbar">
        <FunctionsFilter modules={modules.value} error={wanted.value?.error} />
        <Choice
          label="Grouped by"
          value={view.value.grouping}
          options={[
            { value: 'none', text: 'Flat' },
            { value: 'module', text: 'By module' },
            { value: 'file', text: 'By file' },
          ]}
          onChoose={(by) => setView({ grouping: by })}
        />
        <span class="faint" role="status">
          {list.length === data.functions.length
            ? count(list.length)
            : `${count(list.length)} of ${count(data.functions.length)}`}{' '}
          functions
        </span>
        <span class="spacer" />
        <NotRefreshed of={functions} />
        {chosen && (
          <>
            <Button icon="flame" title="Show in the flame graph (Enter)" onClick={() => showInFlame(chosen)}>
              Show in flame graph
            </Button>
            <Button
              icon="code"
              title="Open source and assembly (S)"
              onClick={() => openSource(chosen.file, chosen.line, chosen.name, chosen.module)}
            >
              Source
            </Button>
          </>
        )}
        <ExportMenu
          table={{
            name: 'CSV',
            what: 'the table as shown',
            save: () =>
              saveFile(`${session.value?.id ?? 'session'}-functions.csv`, 'text/csv', functionsCsv(list, data.unit)),
          }}
        />
      </div>
      <VirtualRows
        class="functions"
        label="Functions"
        count={shown ? shown.length : list.length}
        rowHeight={ROW_HEIGHT}
        scrollTo={scroll.value}
        onKeyDown={keys}
        head={
          <div class="row row-head function-row" role="row">
            <Head name="Self" sort="self" />
            {head('cell-number', data.unit === 'ns' ? 'time' : data.unit)}
            <Head name="Total" sort="total" />
            {head('cell-number', data.unit === 'ns' ? 'time' : data.unit)}
            <Head name="Function" sort="name" />
            <Head name="Module" sort="module" />
            {head('', 'Source')}
          </div>
        }
        render={(index) => {
          const item = shown ? shown[index]! : ({ kind: 'row', row: list[index]! } as const);
          if (item.kind === 'group')
            return <GroupHead key={`group\n${item.group.name}`} group={item.group} unit={data.unit} />;
          return <Row key={keyOf(item.row)} row={item.row} unit={data.unit} />;
        }}
      />
    </section>
  );
}
