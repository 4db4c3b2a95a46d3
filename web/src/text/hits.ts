// Texts of hits of traced events: times, values, words of the filter, figures and CSV. Pure.
import type { HitBucket, HitGroup, Hits, HitTable, TracedEvent, TracedHit } from '../api/types';
import { csv } from './counters';
import { count } from './format';

// Seconds since the session's start, as perf script prints times.
export const hitTime = (ms: number): string => (ms / 1000).toFixed(6);

export const threadIds = ({ pid, tid }: Pick<TracedHit, 'pid' | 'tid'>): string =>
  pid === tid ? `${tid}` : `${pid}/${tid}`;

// Without the system of a tracepoint or the kind of a probe, so that a narrow column shows what differs.
export const eventText = (name: string): string =>
  /^[\w-]+:(?=\S)/.exec(name) ? name.slice(name.indexOf(':') + 1) : name;

export const valuesText = (values: TracedHit['values']): string =>
  values.map(({ name, text }) => `${name}=${text}`).join(' ');

// A word of the filter. The server's grammar has no quotes within quotes: a part of such a text is compared instead.
export function filterWord(name: string, op: string, value: string): string {
  if (value.includes('"')) {
    const part = value.split('"').reduce((a, b) => (b.length > a.length ? b : a));
    return filterWord(name, '~', part);
  }
  return `${name}${op}${/[\s]/.test(value) || value === '' ? `"${value}"` : value}`;
}

// Adds words that the filter does not have yet.
export function withWords(filter: string, words: readonly string[]): string {
  const has = (word: string) => ` ${filter} `.includes(` ${word} `);
  return [filter.trim(), ...words.filter((word) => !has(word))].filter(Boolean).join(' ');
}

const ofEvent = (events: readonly TracedEvent[], chosen: string) =>
  chosen ? events.filter((event) => event.name === chosen) : events;
const fieldsOf = (events: readonly TracedEvent[], chosen: string) =>
  ofEvent(events, chosen).flatMap((event) => event.fields);
const unique = (names: readonly string[]) => [...new Set(names)];

const commonKeys = ['function', 'comm', 'pid', 'tid', 'cpu', 'event'];

// What the hits can be grouped by: fields, then what all events have.
export const groupKeys = (events: readonly TracedEvent[], chosen: string): string[] =>
  unique([...fieldsOf(events, chosen).map((field) => field.name), ...commonKeys]);

// A field that is a text in one event has no figures, because the server refuses it.
export function valueKeys(events: readonly TracedEvent[], chosen: string): string[] {
  const fields = fieldsOf(events, chosen);
  const isNumber = ({ kind }: { kind: string }) => kind === 'unsigned' || kind === 'signed';
  return unique(fields.map((field) => field.name)).filter((name) =>
    fields.filter((field) => field.name === name).every(isNumber),
  );
}

const hits = (number: number) => `${count(number)} ${number === 1 ? 'hit' : 'hits'}`;

// Whether hits of the events stand for several occurrences. The weight of other units is not a number of events.
const isThinned = (events: readonly TracedEvent[], one: { event: string; weight: number }) =>
  one.weight > 1 && !['ns', 'bytes'].includes(events.find((event) => event.name === one.event)?.unit ?? '');

// What is missing, one sentence each.
export function missingHits(answer: Hits): string[] {
  const { removed, dropped, events } = answer;
  const notes = [];
  if (removed > 0) notes.push(`The ${hits(removed)} before these are no longer in memory.`);
  if (dropped > 0) notes.push(`${hits(dropped)} came too fast to keep their values; they are only in the flame graph.`);
  if (answer.hits.some((hit) => isThinned(events, hit)))
    notes.push('There were too many hits, so some stand for several: their weight is more than 1.');
  return notes;
}

export function missingInTable({ other_groups, other_hits, without_key, by, value }: HitTable): string[] {
  const notes = [];
  if (other_groups > 0) notes.push(`${count(other_groups)} rarer keys with ${hits(other_hits)} are not listed.`);
  if (without_key > 0)
    notes.push(`${hits(without_key)} of events without ${[by, value].filter(Boolean).join(' or ')} are left out.`);
  return notes;
}

// A figure of a value: whole, or with three digits after the point.
export const figure = (value: number | undefined): string =>
  value === undefined
    ? '–'
    : Number.isInteger(value)
      ? count(value)
      : value.toLocaleString('en-US', { maximumFractionDigits: 3 });

export type GroupColumn = 'key' | 'hits' | 'weight' | 'sum' | 'avg' | 'min' | 'p50' | 'p95' | 'p99' | 'max';
const figures = ['sum', 'avg', 'min', 'p50', 'p95', 'p99', 'max'] as const;

// The weight is a column only if it is not the number of hits.
export function groupColumns(groups: readonly HitGroup[], withValue: boolean): GroupColumn[] {
  const weighted = groups.some((group) => group.weight !== group.hits);
  return ['key', 'hits', ...(weighted ? (['weight'] as const) : []), ...(withValue ? figures : [])];
}

const byKey = new Intl.Collator('en', { numeric: true });
export function sortedGroups(groups: readonly HitGroup[], by: GroupColumn, ascending: boolean): HitGroup[] {
  const sign = ascending ? 1 : -1;
  return [...groups].sort(
    (a, b) =>
      sign * (by === 'key' ? byKey.compare(a.key, b.key) : (a[by] ?? 0) - (b[by] ?? 0)) || byKey.compare(a.key, b.key),
  );
}

const prefixes = ['', 'K', 'M', 'G', 'T', 'P', 'E'];
// A power of two, as bpftrace prints it: 512, 64K.
function bound(value: number): string {
  let scaled = value;
  let unit = 0;
  while (Math.abs(scaled) >= 1024 && scaled % 1024 === 0 && unit < prefixes.length - 1) {
    scaled /= 1024;
    unit++;
  }
  return `${scaled}${prefixes[unit]}`;
}

// Values are whole, so the first buckets have one value each.
export function bucketText({ low, high }: Pick<HitBucket, 'low' | 'high'>): string {
  if (low === high) return bound(low);
  if (low > 0) return low === 1 ? '1' : `[${bound(low)}, ${bound(high)})`;
  return high === -1 ? '-1' : `(${bound(low)}, ${bound(high)}]`;
}

export function bucketWords(name: string, { low, high }: Pick<HitBucket, 'low' | 'high'>): string[] {
  if (low === high) return [`${name}=${low}`];
  return low > 0 ? [`${name}>=${low}`, `${name}<${high}`] : [`${name}>${low}`, `${name}<=${high}`];
}

// With the empty buckets between the others, so that the shape is right.
export function filledBuckets(buckets: readonly HitBucket[]): HitBucket[] {
  const out: HitBucket[] = [];
  for (const bucket of buckets) {
    for (let last = out.at(-1); last && last.low > 0 && last.high < bucket.low; last = out.at(-1))
      out.push({ low: last.high, high: last.high * 2, hits: 0 });
    out.push(bucket);
  }
  return out;
}

export function hitsCsv(rows: readonly TracedHit[]): string {
  const head = ['seconds', 'command', 'pid', 'tid', 'cpu', 'event', 'weight', 'values', 'function', 'module'];
  return csv([
    head,
    ...rows.map((hit) => [
      (hit.time_ms / 1000).toFixed(9),
      hit.comm,
      String(hit.pid),
      String(hit.tid),
      String(hit.cpu),
      hit.event,
      String(hit.weight),
      valuesText(hit.values),
      hit.stack[0]?.name ?? '',
      hit.stack[0]?.module ?? '',
    ]),
  ]);
}

export function groupsCsv({ by, value, groups }: HitTable): string {
  const columns = groupColumns(groups, value !== '');
  const name = (column: GroupColumn) =>
    column === 'key' ? by : column === 'hits' || column === 'weight' ? column : `${column} of ${value}`;
  return csv([columns.map(name), ...groups.map((group) => columns.map((column) => String(group[column] ?? '')))]);
}
