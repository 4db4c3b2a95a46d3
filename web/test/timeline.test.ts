// The time axis: range, slices, lines and texts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Counters, Mark } from '../src/api/types';
import { axisText, parseAxis } from '../src/model/axis';
import {
  axisOf,
  axisTicks,
  bucketFor,
  panned,
  rangeOf,
  snapped,
  spanOf,
  stepped,
  wallClock,
  zoomed,
} from '../src/timeline/axis';
import { markText, marksAt } from '../src/timeline/marks';
import { counterLine, healthLine, healthPlots, valueAt, type Frame } from '../src/timeline/plots';

test('the axis shows everything, the newest part, or a fixed range', () => {
  assert.deepEqual(spanOf(null, 42_000), { from: 0, to: 42_000 });
  assert.deepEqual(spanOf({ last: 10_000 }, 42_000), { from: 32_000, to: 42_000 });
  assert.deepEqual(spanOf({ last: 10_000 }, 4_000), { from: 0, to: 4_000 });
  assert.deepEqual(spanOf({ from: 5, to: 500 }, 42_000), { from: 5, to: 500 });
  assert.deepEqual(spanOf(null, 0), { from: 0, to: 10 });
});

test('zooming keeps the time under the pointer, and stays within the session', () => {
  const span = zoomed({ from: 0, to: 40_000 }, 0.5, 10_000);
  assert.deepEqual(span, { from: 5_000, to: 25_000 });
  assert.deepEqual(axisOf(span, 40_000, true), { from: 5_000, to: 25_000 });
  assert.equal(axisOf(zoomed(span, 10, 10_000), 40_000, true), null);
  // At the newest end a live session is followed, but not a replay.
  assert.deepEqual(axisOf({ from: 30_000, to: 40_000 }, 40_000, true), { last: 10_000 });
  assert.deepEqual(axisOf({ from: 30_000, to: 40_000 }, 40_000, false), { from: 30_000, to: 40_000 });
  assert.deepEqual(axisOf({ from: 36_000, to: 46_000 }, 40_000, false), { from: 30_000, to: 40_000 });
  assert.deepEqual(axisOf({ from: -5_000, to: 5_000 }, 40_000, true), { from: 0, to: 10_000 });
  assert.deepEqual(axisOf(zoomed({ from: 100, to: 110 }, 0.01, 105), 40_000, true), { from: 100, to: 110 });
  assert.deepEqual(panned({ from: 100, to: 200 }, -0.5), { from: 50, to: 150 });
});

test('slices have round widths, and there are not too many', () => {
  assert.equal(bucketFor({ from: 0, to: 42_000 }, 400), 200);
  assert.equal(bucketFor({ from: 0, to: 40_000 }, 400), 100);
  assert.equal(bucketFor({ from: 0, to: 100 }, 400), 10);
  assert.equal(bucketFor({ from: 0, to: 86_400_000 }, 640), 200_000);
  for (const span of [1, 999, 12_345, 7e6, 9e8]) assert.ok(span / bucketFor({ from: 0, to: span }, 300) <= 300.001);
});

test('dragging gives whole milliseconds within the session', () => {
  assert.deepEqual(rangeOf(1000.4, 2999.6, 10_000), { start: 1000, end: 3000 });
  assert.deepEqual(rangeOf(3000, 1000, 10_000), { start: 1000, end: 3000 });
  assert.deepEqual(rangeOf(-50, 20_000, 9_000), { start: 0, end: 9_000 });
  assert.equal(rangeOf(9_500, 20_000, 9_000), null);
  assert.deepEqual(stepped({ start: 2000, end: 3000 }, 1, 10_000), { start: 3000, end: 4000 });
  assert.deepEqual(stepped({ start: 500, end: 1500 }, -1, 10_000), { start: 0, end: 1000 });
});

test('a range grows to whole steps in coarsened parts', () => {
  // ms 0 is 3.7 s of the target's clock, so steps of 10 s begin at 6.3 s, 16.3 s …; the first is cut by the session's
  // start.
  const coarse = [{ start_ms: 0, end_ms: 26_300, bucket_ms: 10_000 }];
  assert.deepEqual(snapped({ start: 8_000, end: 9_000 }, coarse, 3.7e9), { start: 6_300, end: 16_300 });
  assert.deepEqual(snapped({ start: 1_000, end: 30_000 }, coarse, 3.7e9), { start: 0, end: 30_000 });
  assert.deepEqual(snapped({ start: 26_300, end: 27_000 }, coarse, 3.7e9), { start: 26_300, end: 27_000 });
  assert.deepEqual(snapped({ start: 6_300, end: 16_300 }, coarse, 3.7e9), { start: 6_300, end: 16_300 });
  const dropped = [{ start_ms: 0, end_ms: 5_000, bucket_ms: 0 }];
  assert.deepEqual(snapped({ start: 1_000, end: 2_000 }, dropped, 0), { start: 1_000, end: 2_000 });
});

test('the URL contains the axis', () => {
  for (const axis of [null, { last: 30_000 }, { from: 1000, to: 5000 }])
    assert.deepEqual(parseAxis(axisText(axis)), axis);
  for (const bad of ['', 'last-', '5000-1000', '1-2', 'x', null]) assert.equal(parseAxis(bad), null);
});

test('ticks show the time since the start, with the time of day below', () => {
  const noon = new Date(2026, 0, 2, 12, 0, 5, 250).getTime();
  assert.equal(wallClock(noon, 60_000), '12:00');
  assert.equal(wallClock(noon, 1000), '12:00:05');
  assert.equal(wallClock(noon, 100), '12:00:05.250');
  assert.equal(wallClock(NaN, 1000), '');
  assert.ok(axisTicks({ from: 0, to: 42_000 }, 1000).length <= 11);
});

test('counters are steps of a rate, with gaps where nothing was counted', () => {
  const counter = (unit: string) =>
    ({
      groups: [
        {
          counters: [
            {
              name: 'c',
              unit,
              status: 'counted',
              series: { start_ms: [0, 1000, 5000], end_ms: [1000, 2000, 6000], value: [2e9, 1e9, 5e8] },
            },
          ],
        },
      ],
    }) as unknown as Counters;
  const clock = counterLine('c', counter('ns'));
  assert.deepEqual(clock, { time: [0, 1000, 2000, 5000, 6000], value: [2, 1, null, 0.5, null] });
  assert.equal(counterLine('c', counter('faults')).value[0], 2e9);
  assert.deepEqual(counterLine('other', counter('ns')).time, []);
  assert.equal(valueAt(clock, 1500), 1);
  assert.equal(valueAt(clock, 3000), null);
  assert.equal(valueAt(clock, -1), null);
});

test('health: a level is valid until the next frame, a growing total is a rate', () => {
  const plot = (id: string) => healthPlots.find((one) => one.id === id)!;
  const start = 1_000_000_000;
  const at = (s: number) => start + s * 1e9;
  const cpu = healthLine(
    plot('health:cpu'),
    [
      { mono_ns: at(0), cpu: { overall_pct: null } },
      { mono_ns: at(2), cpu: { overall_pct: 40 } },
      { mono_ns: at(4), cpu: { overall_pct: 60 } },
    ] as Frame[],
    start,
  );
  assert.deepEqual(cpu, { time: [0, 2000, 4000, 6000], value: [null, 40, 60, null] });
  const rss = healthLine(
    plot('health:target-rss'),
    [
      { mono_ns: at(0), rss_kb: 10 },
      { mono_ns: at(0) + 1000, rss_kb: 20 },
      { mono_ns: at(2), rss_kb: 5 },
    ] as Frame[],
    start,
  );
  assert.deepEqual(rss.value, [30 * 1024, 5 * 1024, null]);
  const rx = healthLine(
    plot('health:rx'),
    [0, 1000, 500].map((bytes, i) => ({
      mono_ns: at(2 * i),
      interfaces: { eth0: { rx_bytes: bytes }, eth1: { rx_bytes: bytes } },
    })) as Frame[],
    start,
  );
  assert.deepEqual(rx, { time: [0, 2000, 4000], value: [1000, null, null] });
});

test('marks describe what happened', () => {
  const mark = (more: Partial<Mark>): Mark => ({
    kind: 'exec',
    start_ms: 10,
    end_ms: 10,
    count: 1,
    pid: 42,
    name: 'make',
    ...more,
  });
  assert.equal(markText(mark({})), 'make (42) exec');
  assert.equal(markText(mark({ kind: 'exit', count: 12, end_ms: 30 })), '12 processes ended, first make (42)');
  assert.equal(
    markText(mark({ kind: 'loss', count: 118, reason: 'ring_full', lost: true, event: 'cycles' })),
    '118 samples lost: Kernel buffer full (cycles)',
  );
  assert.match(
    markText(mark({ kind: 'loss', count: 0, reason: 'batches_missing', lost: true })),
    /^No samples: the session file is damaged/,
  );
  assert.match(markText(mark({ kind: 'reconnect', start_ms: 1000, end_ms: 4200 })), /away for 3\.20 s/);
  const marks = [
    mark({}),
    mark({ start_ms: 100, end_ms: 200, kind: 'reconnect' }),
    mark({ start_ms: 900, end_ms: 900 }),
  ];
  assert.deepEqual(marksAt(marks, 150, 20), [marks[1]]);
  assert.deepEqual(marksAt(marks, 60, 60), [marks[1], marks[0]]);
});
