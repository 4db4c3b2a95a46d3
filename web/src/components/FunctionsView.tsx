// All functions with what they cost themselves and with what they call.
import { computed, signal } from '@preact/signals';
import type { FunctionRow } from '../api/types';
import { compilePattern, escapePattern } from '../flame/search';
import { functions } from '../store/data';
import type { SortKey } from '../store/url';
import { isFiltered, openSource, setView, view } from '../store/view';
import { count, splitPath, weight } from '../text/format';
import { Button } from './Button';
import { Icon } from './Icon';
import { Failure, Message } from './Message';
import { SearchBox } from './SearchBox';
import { Share } from './Share';
import { VirtualRows } from './VirtualRows';

const ROW_HEIGHT = 28;

const wanted = computed(() => compilePattern(view.value.filter));
const order = computed(() => `${view.value.sort}/${view.value.ascending}`);

const compare: Record<SortKey, (a: FunctionRow, b: FunctionRow) => number> = {
  self: (a, b) => a.self - b.self || a.total - b.total,
  total: (a, b) => a.total - b.total || a.self - b.self,
  name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  module: (a, b) => (a.module < b.module ? -1 : a.module > b.module ? 1 : a.self - b.self),
};

const rows = computed<FunctionRow[]>(() => {
  const all = functions.data.value?.functions ?? [];
  const pattern = wanted.value;
  const kept = pattern ? all.filter((row) => pattern.test(row.name) || pattern.test(row.module)) : [...all];
  const [sort, ascending] = order.value.split('/') as [SortKey, string];
  const sign = ascending === 'true' ? 1 : -1;
  return kept.sort((a, b) => sign * compare[sort](a, b));
});

const keyOf = (row: FunctionRow) => `${row.name}\n${row.module}\n${row.kind}`;
const selected = signal('');
const scroll = signal({ index: -1, stamp: 0 });

function choose(index: number): void {
  const row = rows.value[index];
  if (!row) return;
  selected.value = keyOf(row);
  setView({ search: `^${escapePattern(row.name)}$` }, 'replace');
}

const showInFlame = (row: FunctionRow) => setView({ tab: 'flame', search: `^${escapePattern(row.name)}$` });

function keys(event: KeyboardEvent): void {
  const at = rows.value.findIndex((row) => keyOf(row) === selected.value);
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
  const row = rows.value[at];
  if (event.key in steps) {
    const next = Math.min(rows.value.length - 1, Math.max(0, at + steps[event.key]!));
    choose(next);
    scroll.value = { index: next, stamp: scroll.value.stamp + 1 };
  } else if (event.key === 'Enter' && row) showInFlame(row);
  else if (event.key === 's' && row) openSource(row.file, row.line);
  else return;
  event.preventDefault();
}

function Head({ name, sort, numeric }: { name: string; sort: SortKey; numeric?: boolean }) {
  const v = view.value;
  const active = v.sort === sort;
  const first = sort === 'name' || sort === 'module';
  return (
    <span role="columnheader" class={`cell ${numeric ? 'cell-number' : ''}`} aria-sort={active ? (v.ascending ? 'ascending' : 'descending') : 'none'}>
      <button
        type="button"
        class={`sort ${active ? 'sort-active' : ''}`}
        onClick={() => setView({ sort, ascending: active ? !v.ascending : first }, 'replace')}
      >
        {name}
        {active && <Icon name={v.ascending ? 'up' : 'down'} />}
      </button>
    </span>
  );
}

function Row({ row, unit, index }: { row: FunctionRow; unit: string; index: number }) {
  const key = keyOf(row);
  return (
    <div
      class={`row function-row ${selected.value === key ? 'row-selected' : ''}`}
      role="row"
      aria-selected={selected.value === key}
      onClick={() => choose(index)}
      onDblClick={() => (row.file ? openSource(row.file, row.line) : showInFlame(row))}
    >
      <span class="cell" role="cell">
        <Share value={row.self_percent / 100} />
      </span>
      <span class="cell cell-number" role="cell" title={`${count(row.self_samples)} samples`}>
        {weight(row.self, unit)}
      </span>
      <span class="cell" role="cell">
        <Share value={row.total_percent / 100} tone="total" />
      </span>
      <span class="cell cell-number" role="cell" title={`${count(row.total_samples)} samples`}>
        {weight(row.total, unit)}
      </span>
      <span class="cell cell-name" role="cell" title={row.name}>
        <span class={`swatch kind-${row.kind}`} />
        <span class="ellipsis">{row.name}</span>
        <span class="row-actions">
          <button type="button" title="Show in the flame graph (Enter)" aria-label={`Show ${row.name} in the flame graph`} onClick={() => showInFlame(row)}>
            <Icon name="flame" />
          </button>
          {row.file && (
            <button type="button" title="Open the source (S)" aria-label={`Open the source of ${row.name}`} onClick={() => openSource(row.file, row.line)}>
              <Icon name="code" />
            </button>
          )}
        </span>
      </span>
      <span class="cell faint ellipsis" role="cell" title={row.module}>
        {row.module}
      </span>
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
  const chosen = list.find((row) => keyOf(row) === selected.value);
  return (
    <section class={`view ${functions.loading.value ? 'is-stale' : ''}`}>
      <div class="toolbar">
        <SearchBox
          value={view.value.filter}
          placeholder="Filter by name or module"
          error={wanted.value?.error}
          onInput={(text) => setView({ filter: text }, 'replace')}
        />
        <span class="faint" role="status">
          {list.length === data.functions.length ? count(list.length) : `${count(list.length)} of ${count(data.functions.length)}`} functions
        </span>
        <span class="spacer" />
        {chosen && (
          <>
            <Button icon="flame" title="Show in the flame graph (Enter)" onClick={() => showInFlame(chosen)}>
              Show in flame graph
            </Button>
            <Button icon="code" title="Open the source (S)" disabled={!chosen.file} onClick={() => openSource(chosen.file, chosen.line)}>
              Source
            </Button>
          </>
        )}
      </div>
      <VirtualRows
        class="functions"
        label="Functions"
        count={list.length}
        rowHeight={ROW_HEIGHT}
        scrollTo={scroll.value}
        onKeyDown={keys}
        head={
          <div class="row row-head function-row" role="row">
            <Head name="Self" sort="self" />
            <span role="columnheader" class="cell cell-number">{data.unit === 'ns' ? 'time' : data.unit}</span>
            <Head name="Total" sort="total" />
            <span role="columnheader" class="cell cell-number">{data.unit === 'ns' ? 'time' : data.unit}</span>
            <Head name="Function" sort="name" />
            <Head name="Module" sort="module" />
            <span role="columnheader" class="cell">Source</span>
          </div>
        }
        render={(index) => <Row key={keyOf(list[index]!)} row={list[index]!} unit={data.unit} index={index} />}
      />
    </section>
  );
}
