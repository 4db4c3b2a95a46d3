// All functions of both sides of a comparison, by their change. New and removed functions are marked.
import { computed, signal } from '@preact/signals';
import type { FunctionDiff } from '../../api/types';
import { compilePattern, escapePattern } from '../../model/pattern';
import type { Change } from '../../model/baseline';
import { dropBaseline } from '../../store/compare';
import { functionDiffs } from '../../store/data';
import { saveFile } from '../../store/save';
import { session } from '../../store/session';
import type { ChangeSort } from '../../model/view_state';
import { openSource, setView, view } from '../../store/view';
import { changesCsv, changeText, countChanges, selectChanges } from '../../text/diff';
import { count, percent, weight } from '../../text/format';
import { modulesOf } from '../../text/functions';
import { Button } from '../widgets/Button';
import { cell, SortHead } from '../widgets/cells';
import { Choice } from '../widgets/Choice';
import { NormaliseChoice } from './DiffBar';
import { FunctionsFilter } from './FunctionsFilter';
import { Icon } from '../widgets/Icon';
import { Failure, Message } from '../widgets/Message';
import { VirtualRows } from '../widgets/VirtualRows';

const ROW_HEIGHT = 28;

const wanted = computed(() => compilePattern(view.value.filter));
const data = functionDiffs.data;
const counts = computed(() => countChanges(data.value?.functions ?? []));
const modules = computed(() =>
  modulesOf(
    (data.value?.functions ?? []).map((row) => ({ module: row.module, self: Math.max(row.self, row.base_self) })),
  ),
);
const rows = computed(() => {
  const { changeSort, ascending, change, module } = view.value;
  return selectChanges(data.value?.functions ?? [], changeSort, ascending, { change, pattern: wanted.value, module });
});
// The largest change, which has the longest bar.
const largest = computed(() =>
  (data.value?.functions ?? []).reduce(
    (most, row) => Math.max(most, Math.abs(row.self_change), Math.abs(row.total_change)),
    0,
  ),
);

const keyOf = (row: FunctionDiff) => `${row.name}\n${row.module}`;
const selected = signal('');
const scroll = signal({ index: -1, stamp: 0 });

function choose(row: FunctionDiff | undefined): void {
  if (!row) return;
  selected.value = keyOf(row);
  setView({ search: `^${escapePattern(row.name)}$` }, 'replace');
}

// A function that is gone has a width only in the baseline.
const showInFlame = (row: FunctionDiff) =>
  setView({
    tab: 'flame',
    search: `^${escapePattern(row.name)}$`,
    ...(row.presence === 'both' ? {} : { width: row.presence === 'gone' ? 'baseline' : 'view' }),
  });

function keys(event: KeyboardEvent): void {
  if (event.target !== event.currentTarget) return;
  const list = rows.value;
  const at = list.findIndex((row) => keyOf(row) === selected.value);
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
  const row = list[at];
  if (event.key in steps) {
    const next = Math.min(list.length - 1, Math.max(0, at + steps[event.key]!));
    choose(list[next]);
    scroll.value = { index: next, stamp: scroll.value.stamp + 1 };
  } else if (event.key === 'Enter' && row) showInFlame(row);
  else if (event.key === 's' && row) openSource(row.file, row.line);
  else return;
  event.preventDefault();
}

const Head = ({ name, sort, title }: { name: string; sort: ChangeSort; title?: string }) => (
  <SortHead
    name={name}
    sort={sort}
    now={view.value.changeSort}
    kind={title && 'cell-number'}
    title={title}
    choose={(ascending) => setView({ changeSort: sort, ascending })}
  />
);

// A bar from the middle. It points to the right if the weight grew.
function ChangeCell({ change, unit }: { change: number; unit: string }) {
  const share = largest.value > 0 ? Math.abs(change) / largest.value : 0;
  return (
    <span class={`cell change change-${view.value.contrast}`} role="cell">
      <span class={`change-bar ${change > 0 ? 'change-grew' : 'change-shrank'}`} style={{ width: `${share * 50}%` }} />
      <span class="change-text">{changeText(change, view.value.normalise, unit)}</span>
    </span>
  );
}

function Weights({ own, samples, whole, unit }: { own: number; samples: number; whole: number; unit: string }) {
  return cell(
    'cell-number',
    own > 0 ? percent(whole > 0 ? own / whole : 0, 2) : '–',
    `${weight(own, unit)}, ${count(samples)} samples`,
  );
}

function Row({ row }: { row: FunctionDiff }) {
  const { unit, whole, base } = data.value!;
  const active = keyOf(row) === selected.value;
  return (
    <div
      class={`row diff-row ${active ? 'row-selected' : ''}`}
      role="row"
      aria-selected={active}
      onClick={() => choose(row)}
      onDblClick={() => showInFlame(row)}
    >
      <ChangeCell change={row.self_change} unit={unit} />
      <Weights own={row.self} samples={row.self_samples} whole={whole.weight} unit={unit} />
      <Weights own={row.base_self} samples={row.base_self_samples} whole={base.whole.weight} unit={unit} />
      <ChangeCell change={row.total_change} unit={unit} />
      <Weights own={row.total} samples={row.total_samples} whole={whole.weight} unit={unit} />
      <Weights own={row.base_total} samples={row.base_total_samples} whole={base.whole.weight} unit={unit} />
      <span class="cell cell-name" role="cell" title={row.name}>
        <span class={`swatch kind-${row.kind}`} />
        {row.presence !== 'both' && <span class={`presence presence-${row.presence}`}>{row.presence}</span>}
        <span class="ellipsis">{row.name}</span>
        <span class="row-actions">
          <button
            type="button"
            title="Show in the flame graph (Enter)"
            aria-label={`Show ${row.name} in the flame graph`}
            onClick={() => showInFlame(row)}
          >
            <Icon name="flame" />
          </button>
          {row.file && (
            <button
              type="button"
              title="Open the source (S)"
              aria-label={`Open the source of ${row.name}`}
              onClick={() => openSource(row.file, row.line)}
            >
              <Icon name="code" />
            </button>
          )}
        </span>
      </span>
      {cell('faint ellipsis', row.module, row.module)}
    </div>
  );
}

const changeNames: Record<Change, string> = { all: 'All', new: 'New', gone: 'Gone', grew: 'Grew', shrank: 'Shrank' };

export function DiffFunctionsView() {
  const answer = data.value;
  const error = functionDiffs.error.value;
  if (!answer || answer.functions.length === 0) {
    if (error) {
      return (
        <Failure error={error}>
          <Button title="Show the profile alone again" onClick={dropBaseline}>
            Stop comparing
          </Button>
        </Failure>
      );
    }
    if (functionDiffs.loading.value) return <Message title="Comparing the functions" busy />;
    return <Message title="Neither side has samples" />;
  }
  const list = rows.value;
  return (
    <section class={`view ${functionDiffs.loading.value ? 'is-stale' : ''}`}>
      <div class="toolbar">
        <FunctionsFilter modules={modules.value} error={wanted.value?.error} />
        <Choice
          label="Changed how"
          value={view.value.change}
          options={(Object.keys(changeNames) as Change[]).map((change) => ({
            value: change,
            text: `${changeNames[change]} ${count(counts.value[change])}`,
          }))}
          onChoose={(change) => setView({ change })}
        />
        <NormaliseChoice />
        <span class="faint" role="status">
          {list.length === answer.functions.length
            ? count(list.length)
            : `${count(list.length)} of ${count(answer.functions.length)}`}{' '}
          functions
        </span>
        {error && <span class="note note-error">Not refreshed: {error.message}</span>}
        <span class="spacer" />
        <Button
          icon="download"
          title="Save what is shown as CSV"
          onClick={() =>
            saveFile(
              `${session.value?.id ?? 'session'}-changes.csv`,
              'text/csv',
              changesCsv(list, answer.unit, answer.normalise),
            )
          }
        />
      </div>
      <VirtualRows
        class="functions"
        label="Changes of functions"
        count={list.length}
        rowHeight={ROW_HEIGHT}
        scrollTo={scroll.value}
        onKeyDown={keys}
        head={
          <div class="row row-head diff-row" role="row">
            <Head name="Δ self" sort="self_change" title="Own weight, view less baseline, by the size of the change" />
            <Head name="Now" sort="self" title="Own share of all, of what is shown" />
            <Head name="Baseline" sort="base_self" title="Own share of all, of the baseline" />
            <Head
              name="Δ total"
              sort="total_change"
              title="With what it calls, view less baseline, by the size of the change"
            />
            <Head name="Now" sort="total" title="Share of all with what it calls, of what is shown" />
            <Head name="Baseline" sort="base_total" title="Share of all with what it calls, of the baseline" />
            <Head name="Function" sort="name" />
            <Head name="Module" sort="module" />
          </div>
        }
        render={(index) => <Row key={keyOf(list[index]!)} row={list[index]!} />}
      />
    </section>
  );
}
