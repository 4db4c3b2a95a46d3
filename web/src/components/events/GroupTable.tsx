// Hits by a key: their number, the figures of a value, and the distribution of the value.
import { computed, signal } from '@preact/signals';
import type { HitBucket, HitGroup } from '../../api/types';
import { addWords, hitTable } from '../../store/hits';
import { count } from '../../text/format';
import {
  bucketText,
  bucketWords,
  figure,
  filledBuckets,
  filterWord,
  groupColumns,
  sortedGroups,
  type GroupColumn,
} from '../../text/hits';
import { cell } from '../widgets/cells';
import { Icon } from '../widgets/Icon';
import { Message } from '../widgets/Message';
import { VirtualRows } from '../widgets/VirtualRows';

const ROW_HEIGHT = 28;
const order = signal<{ by: GroupColumn; ascending: boolean }>({ by: 'hits', ascending: false });

const columns = computed(() => groupColumns(hitTable.data.value?.groups ?? [], Boolean(hitTable.data.value?.value)));
const rows = computed(() => {
  const { by, ascending } = order.value;
  return sortedGroups(hitTable.data.value?.groups ?? [], columns.value.includes(by) ? by : 'hits', ascending);
});
const names: Partial<Record<GroupColumn, string>> = {
  hits: 'Hits',
  weight: 'Weight',
  sum: 'Sum',
  avg: 'Average',
  min: 'Min',
  max: 'Max',
};
const titles: Partial<Record<GroupColumn, string>> = {
  weight: 'Events for which the hits stand',
  p50: 'The median: half of the values are not above it',
  p95: '95 % of the values are not above it',
  p99: '99 % of the values are not above it',
};

function Head({ column, by }: { column: GroupColumn; by: string }) {
  const active = order.value.by === column;
  const { ascending } = order.value;
  return (
    <span
      role="columnheader"
      class={`cell ${column === 'key' ? '' : 'cell-number'}`}
      title={titles[column]}
      aria-sort={active ? (ascending ? 'ascending' : 'descending') : 'none'}
    >
      <button
        type="button"
        class={`sort ${active ? 'sort-active' : ''}`}
        onClick={() => (order.value = { by: column, ascending: active ? !ascending : column === 'key' })}
      >
        {column === 'key' ? by : (names[column] ?? column)}
        {active && <Icon name={ascending ? 'up' : 'down'} />}
      </button>
    </span>
  );
}

function Row({ group, by, most }: { group: HitGroup; by: string; most: number }) {
  // `function` in a filter is any function on the stack.
  const word = filterWord(by === 'function' ? 'leaf' : by, '=', group.key);
  return (
    <div class="row group-hits-row" role="row">
      <span class="cell ellipsis" role="cell">
        <button
          type="button"
          class="link ellipsis hit-key"
          title={`List the hits with ${word}`}
          onClick={() => addWords([word])}
        >
          {group.key || '(empty)'}
        </button>
      </span>
      {columns.value.slice(1).map((column) =>
        column === 'hits' ? (
          <span key={column} class="cell" role="cell">
            <span class="share share-self">
              <span class="share-bar" style={{ width: `${(100 * group.hits) / Math.max(1, most)}%` }} />
              <span class="share-text">{count(group.hits)}</span>
            </span>
          </span>
        ) : (
          cell('cell-number', figure(group[column as Exclude<GroupColumn, 'key'>]))
        ),
      )}
    </div>
  );
}

function Distribution({ value, buckets }: { value: string; buckets: readonly HitBucket[] }) {
  const most = buckets.reduce((max, bucket) => Math.max(max, bucket.hits), 1);
  return (
    <aside class="hit-detail hit-distribution" aria-label={`Distribution of ${value}`} tabIndex={0}>
      <h3>
        Distribution of <span class="mono">{value}</span>
      </h3>
      <p class="faint">All groups together, by powers of two. Press a bar to list its hits.</p>
      <ul>
        {filledBuckets(buckets).map((bucket) => (
          <li key={bucket.low}>
            <button
              type="button"
              class="bucket"
              disabled={bucket.hits === 0}
              aria-label={`${value} in ${bucketText(bucket)}: ${count(bucket.hits)} hits`}
              title={`List the hits with ${bucketWords(value, bucket).join(' ')}`}
              onClick={() => addWords(bucketWords(value, bucket))}
            >
              <span class="mono">{bucketText(bucket)}</span>
              <span class="bucket-room">
                <span class="bucket-bar" style={{ width: `${(100 * bucket.hits) / most}%` }} />
              </span>
              <span class="cell-number">{count(bucket.hits)}</span>
            </button>
          </li>
        ))}
      </ul>
    </aside>
  );
}

export function GroupTable() {
  const data = hitTable.data.value;
  if (!data) return <Message title="Grouping the hits" busy />;
  if (data.groups.length === 0) return <Message title="No hits match the filter" />;
  const { by, value, distribution } = data;
  const most = data.groups.reduce((max, group) => Math.max(max, group.hits), 0);
  const numbers = columns.value.length - 2;
  return (
    <div
      class={`hits-body ${distribution.length > 0 ? 'hits-open' : ''}`}
      style={{ '--group-columns': `minmax(160px, 2fr) 120px ${'minmax(84px, 1fr) '.repeat(numbers)}` }}
    >
      <VirtualRows
        class="groups"
        label={`Hits by ${by}`}
        count={rows.value.length}
        rowHeight={ROW_HEIGHT}
        head={
          <div class="row row-head group-hits-row" role="row">
            {columns.value.map((column) => (
              <Head key={column} column={column} by={by} />
            ))}
          </div>
        }
        render={(index) => {
          const group = rows.value[index]!;
          return <Row key={group.key} group={group} by={by} most={most} />;
        }}
      />
      {distribution.length > 0 && <Distribution value={value} buckets={distribution} />}
    </div>
  );
}
