// Texts of traced hits, computed by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HitGroup, Hits, HitTable, TracedEvent, TracedHit } from '../src/api/types';
import { formatHash, parseHash } from '../src/model/view_state';
import {
  bucketText,
  bucketWords,
  eventText,
  figure,
  filledBuckets,
  filterWord,
  groupColumns,
  groupKeys,
  groupsCsv,
  hitsCsv,
  hitTime,
  missingHits,
  missingInTable,
  sortedGroups,
  threadIds,
  valueKeys,
  withWords,
} from '../src/text/hits';

const events: TracedEvent[] = [
  {
    name: 'enter',
    unit: 'events',
    fields: [
      { name: 'fd', kind: 'unsigned' },
      { name: 'buf', kind: 'address' },
      { name: 'name', kind: 'text' },
    ],
  },
  {
    name: 'exit',
    unit: 'events',
    fields: [
      { name: 'ret', kind: 'signed' },
      { name: 'name', kind: 'unsigned' },
    ],
  },
  { name: 'runtime', unit: 'ns', fields: [] },
];
const hit = (change: Partial<TracedHit> = {}): TracedHit => ({
  number: 7,
  time_ms: 1234.567891,
  event: 'enter',
  tid: 12,
  pid: 11,
  comm: 'a,b',
  cpu: 3,
  weight: 1,
  values: [
    { name: 'fd', text: '3' },
    { name: 'name', text: '/x "y"' },
  ],
  stack: [{ name: 'write', module: 'libc.so.6' }],
  ...change,
});

test('times have microseconds, and threads their ids', () => {
  assert.equal(hitTime(1234.567891), '1.234568');
  assert.equal(hitTime(0), '0.000000');
  assert.equal(threadIds({ pid: 11, tid: 12 }), '11/12');
  assert.equal(threadIds({ pid: 11, tid: 11 }), '11');
});

test('names of events are shortened in rows', () => {
  assert.equal(eventText('syscalls:sys_enter_write'), 'sys_enter_write');
  assert.equal(eventText('uprobe:malloc@libc'), 'malloc@libc');
  assert.equal(eventText('cycles'), 'cycles');
});

test('words of the filter quote what has spaces', () => {
  assert.equal(filterWord('fd', '=', '3'), 'fd=3');
  assert.equal(filterWord('comm', '=', 'my task'), 'comm="my task"');
  assert.equal(filterWord('name', '=', ''), 'name=""');
  // The grammar cannot write a quote, so the longest part without one is searched.
  assert.equal(filterWord('name', '=', 'a "long part" b'), 'name~"long part"');
  assert.equal(withWords('', ['fd=3']), 'fd=3');
  assert.equal(withWords('fd=3 x', ['fd=3', 'ret<0']), 'fd=3 x ret<0');
  assert.equal(withWords('fd=31', ['fd=3']), 'fd=31 fd=3');
});

test('keys are the fields and what all events have; figures only of numbers', () => {
  assert.deepEqual(groupKeys(events, 'exit'), ['ret', 'name', 'function', 'comm', 'pid', 'tid', 'cpu', 'event']);
  assert.deepEqual(groupKeys(events, '').slice(0, 4), ['fd', 'buf', 'name', 'ret']);
  // `name` is a text in one of the events.
  assert.deepEqual(valueKeys(events, ''), ['fd', 'ret']);
  assert.deepEqual(valueKeys(events, 'exit'), ['ret', 'name']);
});

test('what is missing is reported', () => {
  const answer = (change: Partial<Hits>): Hits => ({
    session: 's',
    data_version: 1,
    kept: 1,
    removed: 0,
    dropped: 0,
    matching: 1,
    events,
    hits: [hit()],
    ...change,
  });
  assert.deepEqual(missingHits(answer({})), []);
  assert.match(missingHits(answer({ removed: 1200 }))[0]!, /^The 1,200 hits before these/);
  assert.match(missingHits(answer({ dropped: 1 }))[0]!, /^1 hit came too fast/);
  assert.match(missingHits(answer({ hits: [hit({ weight: 17 })] }))[0]!, /stand for several/);
  // A time is not a number of events.
  assert.deepEqual(missingHits(answer({ hits: [hit({ event: 'runtime', weight: 17 })] })), []);
  const table: HitTable = {
    session: 's',
    data_version: 1,
    by: 'fd',
    value: 'count',
    groups: [],
    other_groups: 5,
    other_hits: 9,
    without_key: 2,
    distribution: [],
  };
  assert.deepEqual(missingInTable(table), [
    '5 rarer keys with 9 hits are not listed.',
    '2 hits of events without fd or count are left out.',
  ]);
});

test('figures and groups', () => {
  assert.equal(figure(65536), '65,536');
  assert.equal(figure(2.34567), '2.346');
  assert.equal(figure(undefined), '–');
  const group = (key: string, hits: number, change: Partial<HitGroup> = {}) => ({ key, hits, weight: hits, ...change });
  assert.deepEqual(groupColumns([group('a', 1)], false), ['key', 'hits']);
  assert.deepEqual(groupColumns([group('a', 1, { weight: 17 })], false), ['key', 'hits', 'weight']);
  const groups = [group('10', 1, { max: 5 }), group('9', 4, { max: 1 }), group('2', 4, { max: 9 })];
  const keys = (list: HitGroup[]) => list.map(({ key }) => key).join(' ');
  assert.equal(keys(sortedGroups(groups, 'key', true)), '2 9 10');
  assert.equal(keys(sortedGroups(groups, 'hits', false)), '2 9 10');
  assert.equal(keys(sortedGroups(groups, 'max', true)), '9 10 2');
});

test('buckets have the bounds that bpftrace prints', () => {
  assert.equal(bucketText({ low: 0, high: 0 }), '0');
  assert.equal(bucketText({ low: 1, high: 2 }), '1');
  assert.equal(bucketText({ low: 512, high: 1024 }), '[512, 1K)');
  assert.equal(bucketText({ low: 2 ** 20, high: 2 ** 21 }), '[1M, 2M)');
  assert.equal(bucketText({ low: -2, high: -1 }), '-1');
  assert.equal(bucketText({ low: -4, high: -2 }), '(-4, -2]');
  assert.deepEqual(bucketWords('ret', { low: 0, high: 0 }), ['ret=0']);
  assert.deepEqual(bucketWords('ret', { low: 4, high: 8 }), ['ret>=4', 'ret<8']);
  assert.deepEqual(bucketWords('ret', { low: -4, high: -2 }), ['ret>-4', 'ret<=-2']);
  const bucket = (low: number, high: number, hits = 1) => ({ low, high, hits });
  assert.deepEqual(filledBuckets([bucket(-2, -1), bucket(0, 0), bucket(4, 8), bucket(32, 64)]), [
    bucket(-2, -1),
    bucket(0, 0),
    bucket(4, 8),
    bucket(8, 16, 0),
    bucket(16, 32, 0),
    bucket(32, 64),
  ]);
});

test('tables as CSV', () => {
  assert.equal(
    hitsCsv([hit()]),
    'seconds,command,pid,tid,cpu,event,weight,values,function,module\r\n' +
      '1.234567891,"a,b",11,12,3,enter,1,"fd=3 name=/x ""y""",write,libc.so.6\r\n',
  );
  const table = { by: 'fd', value: '', groups: [{ key: '3', hits: 2, weight: 34 }] } as unknown as HitTable;
  assert.equal(groupsCsv(table), 'fd,hits,weight\r\n3,2,34\r\n');
});

test('the address has the filter, the grouping and the chosen hit', () => {
  const hash = '#events?traced=enter&hits=fd%3D3&by=fd&value=count&until=12.5&hit=7%401234.567891';
  const view = parseHash(hash);
  assert.deepEqual(view.hit, { number: 7, ms: 1234.567891 });
  assert.deepEqual([view.hitEvent, view.hitFilter, view.hitsBy, view.hitsValue], ['enter', 'fd=3', 'fd', 'count']);
  assert.equal(formatHash(view), hash);
  for (const wrong of ['x@1', '7', '7@', '1.5@1', '@'])
    assert.equal(parseHash(`#events?hit=${wrong}`).hit, null, wrong);
});
