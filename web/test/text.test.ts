// Numbers, times, addresses and the other pure functions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loss, Module, ModuleRow, ModuleState, SourceLine } from '../src/api/types';
import { query } from '../src/api/client';
import { defaultView, formatHash, parseHash } from '../src/model/view_state';
import {
  counterRate,
  counterValue,
  csv,
  derivedText,
  level,
  shareCounted,
  sparkPath,
  statusWord,
} from '../src/text/counters';
import { fetchText } from '../src/text/fetch';
import {
  axisTime,
  bytes,
  count,
  duration,
  percent,
  short,
  splitPath,
  ticks,
  weight,
  weightOf,
} from '../src/text/format';
import { hotLines, linesOnPaper, nextHot } from '../src/text/heat';
import { amountText, lostText, sumLosses } from '../src/text/loss';
import { byState, uploadId } from '../src/text/modules';
import { Rate } from '../src/text/rate';
import { modesOf, settingsOf, wholeness } from '../src/text/stacks';
import { commandIn } from '../src/text/remedy';

test('off-CPU time contains the state', () => {
  assert.equal(weightOf('off-cpu', 2.5e9, 'ns'), '2.50 s blocked');
  assert.equal(weightOf('run-queue', 2e6, 'ns'), '2.00 ms runnable');
  assert.equal(weightOf('cpu-clock', 2e6, 'ns'), '2.00 ms');
});

test('numbers', () => {
  assert.equal(count(1234567), '1,234,567');
  assert.equal(short(999), '999');
  assert.equal(short(1234), '1.23 k');
  assert.equal(short(45_600_000), '45.6 M');
  assert.equal(short(999_600), '1.00 M');
  assert.equal(percent(0.1234), '12.3 %');
  assert.equal(percent(0), '0.0 %');
  assert.equal(percent(0.0001), '<0.1 %');
  assert.equal(percent(0.0001, 2), '0.01 %');
  assert.equal(bytes(512), '512 B');
  assert.equal(bytes(5_400_000), '5.15 MiB');
});

test('the state of the symbols of a module', () => {
  const fetch = { bytes: 1_048_576, total_bytes: 4_194_304, problem: '' };
  assert.equal(fetchText(null), '');
  assert.equal(fetchText({ ...fetch, state: 'asked' }), 'Its symbols are being requested from the agent.');
  assert.equal(fetchText({ ...fetch, state: 'arriving' }), 'Its symbols come from the agent: 25 % of 4.00 MiB.');
  assert.equal(fetchText({ ...fetch, state: 'arrived' }), 'Its symbols came from the agent: 4.00 MiB.');
  assert.equal(
    fetchText({ ...fetch, state: 'interrupted', problem: 'the agent disconnected' }),
    'Its symbols are on the way from the agent, 25 % of 4.00 MiB are here: the agent disconnected. It continues on its own.',
  );
  assert.equal(
    fetchText({ ...fetch, total_bytes: 0, state: 'refused', problem: 'too large' }),
    'The agent has not sent its symbols: too large.',
  );
});

test('times', () => {
  assert.equal(duration(0.25), '250 µs');
  assert.equal(duration(18.2), '18.2 ms');
  assert.equal(duration(1500), '1.50 s');
  assert.equal(duration(125_000), '2 min 05 s');
  assert.equal(duration(3_900_000), '1 h 05 min');
  assert.equal(weight(2.5e9, 'ns'), '2.50 s');
  assert.equal(weight(1234, 'cycles'), '1.23 k cycles');
  assert.deepEqual([0, 250, 5000, 2500, 65_000, 3_725_000].map(axisTime), [
    '0',
    '250 ms',
    '5 s',
    '2.5 s',
    '1:05',
    '1:02:05',
  ]);
  assert.deepEqual(ticks(0, 42_000, 10), [0, 5000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000, 40_000]);
  assert.deepEqual(ticks(5, 5, 10), []);
});

test('paths of files', () => {
  assert.deepEqual(splitPath('/build/city/traffic.cc'), { folder: '/build/city/', file: 'traffic.cc' });
  assert.deepEqual(splitPath('traffic.cc'), { folder: '', file: 'traffic.cc' });
});

test('the URL contains the view, and is empty for the default view', () => {
  assert.equal(formatHash(defaultView), '#flame');
  assert.deepEqual(parseHash(''), defaultView);
  const view = {
    ...defaultView,
    tab: 'source' as const,
    session: '2026 a&b',
    event: 'cpu_core/cycles/',
    pids: [4],
    tids: [7, 8],
    container: 'a,b',
    pod: 'p',
    cgroup: '/x/y',
    start: 0,
    end: 1200.5,
    zoom: ['main', 'operator()(int, char)', 'a;b'],
    search: '^x|y$',
    filter: 'z+',
    sort: 'name' as const,
    ascending: true,
    file: '/src/ü.cc',
    line: 12,
    upright: true,
    byWeight: true,
  };
  assert.deepEqual(parseHash(formatHash(view)), view);
});

test('malformed URLs give a usable view', () => {
  const view = parseHash('#nonsense?tid=7,x,-3&start=abc&end=&line=1.5&sort=bad');
  assert.equal(view.tab, 'flame');
  assert.deepEqual(view.tids, [7]);
  assert.equal(view.start, null);
  assert.equal(view.end, null);
  assert.equal(view.line, 0);
  assert.equal(view.sort, 'self');
});

test('query strings omit values that are not set', () => {
  assert.equal(query({}), '');
  assert.equal(query({ a: '', b: null, c: undefined, d: [] }), '');
  assert.equal(query({ start: 0, tid: [1, 2], event: 'a b' }), '?start=0&tid=1%2C2&event=a+b');
});

test('rates over a window', () => {
  const rate = new Rate(3000);
  assert.equal(rate.perSecond(0), 0);
  for (let i = 0; i <= 10; i++) rate.add(i * 500, i * 50);
  assert.equal(rate.perSecond(5000), 100);
  assert.equal(rate.perSecond(9000), 0);
  rate.add(9000, 10); // a new recording starts with a lower count
  assert.equal(rate.perSecond(9000), 0);
});

test('losses are added up by reason, lost ones first', () => {
  const loss = (reason: Loss['reason'], number: number, lost: boolean): Loss => ({ reason, count: number, lost });
  assert.deepEqual(
    sumLosses([
      loss('stack_truncated', 90, false),
      loss('ring_full', 5, true),
      loss('throttled', 7, true),
      loss('ring_full', 6, true),
    ]),
    [
      { reason: 'ring_full', count: 11, lost: true },
      { reason: 'throttled', count: 7, lost: true },
      { reason: 'stack_truncated', count: 90, lost: false },
    ],
  );
});

test('thread time in an unknown state is formatted as a duration', () => {
  assert.equal(amountText({ reason: 'ring_full', count: 1234 }), '1,234');
  assert.equal(amountText({ reason: 'thread_state_unknown', count: 2_500_000_000 }), '2.50 s');
});

test('for a damaged file the number of lost samples is a minimum', () => {
  assert.equal(lostText(0), '0');
  assert.equal(lostText(1234), '1,234');
  assert.equal(lostText(0, true), 'unknown');
  assert.equal(lostText(1234, true), 'at least 1,234');
});

test('commands are found in remedies', () => {
  assert.equal(commandIn('sysctl -w kernel.perf_event_paranoid=1'), 'sysctl -w kernel.perf_event_paranoid=1');
  assert.equal(
    commandIn('Run `setcap cap_perfmon+ep ./flamewire-agent` once.'),
    'setcap cap_perfmon+ep ./flamewire-agent',
  );
  assert.equal(
    commandIn('on the target: sysctl -w kernel.kptr_restrict=0, then start it again'),
    'sysctl -w kernel.kptr_restrict=0',
  );
  assert.equal(commandIn('Use a newer kernel'), 'Use a newer kernel');
});

test('hot lines, with wraparound', () => {
  const line = (number: number, own: number) => ({ line: number, weight: own }) as SourceLine;
  const hot = hotLines([line(1, 0), line(4, 100), line(9, 4), line(12, 5), line(20, 60)]);
  assert.deepEqual(hot, [4, 12, 20]);
  assert.equal(nextHot(hot, 4, 1), 12);
  assert.equal(nextHot(hot, 20, 1), 4);
  assert.equal(nextHot(hot, 4, -1), 20);
  assert.equal(nextHot(hot, 13, -1), 12);
  assert.equal(nextHot([], 4, 1), 0);
});

test('how complete stacks are, as text', () => {
  const none = { samples: 0, whole: 0, joined: 0, truncated: 0, open_end: 0, stopped: 0, frames: 0, stack_bytes: 0 };
  assert.equal(wholeness(none), '');
  assert.equal(wholeness({ ...none, samples: 5, whole: 5 }), 'all whole');
  // Joined stacks are whole.
  assert.equal(
    wholeness({ ...none, samples: 1000, whole: 985, joined: 12, truncated: 3 }),
    '99.7 % whole · 12 joined · 3 truncated',
  );
  assert.equal(wholeness({ ...none, samples: 1_000_000, whole: 999_999, stopped: 1 }), '99.9 % whole · 1 stopped');
  assert.equal(wholeness({ ...none, samples: 4, joined: 4 }), 'all whole · 4 joined');
  // Frame pointers alone do not show whether the root was reached.
  assert.equal(wholeness({ ...none, samples: 4, open_end: 4 }), 'all open-ended');
  assert.equal(wholeness({ ...none, samples: 200, open_end: 199, truncated: 1 }), '99.5 % open-ended · 1 truncated');
  assert.equal(wholeness({ ...none, samples: 2, whole: 1, open_end: 1 }), '50.0 % whole · 1 open-ended');
  assert.equal(wholeness({ ...none, samples: 2, stopped: 2 }), '0.0 % whole · 2 stopped');
});

test('the stack modes, the most used first', () => {
  assert.equal(modesOf({ unwind: 'fp' }), 'fp');
  assert.equal(modesOf({ unwind: 'auto', unwind_processes: [] }), 'auto');
  assert.equal(modesOf({ unwind: 'dwarf', unwind_processes: [{ mode: 'dwarf', samples: 9 }] }), 'dwarf');
  const mixed = [
    { mode: 'fp', samples: 6 },
    { mode: 'dwarf', samples: 9 },
    { mode: 'fp', samples: 4 },
  ] as const;
  assert.equal(modesOf({ unwind: 'auto', unwind_processes: mixed }), 'auto: fp + dwarf');
  assert.equal(modesOf({ unwind: 'dwarf', unwind_processes: [{ mode: 'fp', samples: 1 }] }), 'dwarf: fp');
  assert.equal(
    settingsOf({ stack_bytes: 16384, max_depth: 1024 }),
    'copies of up to 16.0 KiB a stack, at most 1,024 frames',
  );
  assert.equal(settingsOf({ stack_bytes: 0, max_depth: 127 }), 'at most 127 frames');
});

test('a table for spreadsheets has no formulas and no control characters', () => {
  const line = (text: string) => csv([[text]]).slice(0, -2);
  for (const number of ['-1', '-0.25', '12', '-1e-7', '1e+21']) assert.equal(line(number), number);
  for (const formula of ["-1+cmd|' /C calc'!A0", '-1e', '-.5', '=1', '+1', '@sum', '-'])
    assert.equal(line(formula), `'${formula}`);
  assert.equal(line('=a,"b"'), `"'=a,""b"""`);
  assert.equal(line('\t=1'), "' =1");
  assert.equal(line('\r\n-cmd'), "'  -cmd");
  assert.equal(line('a\x1b[2J\x9b\u202e\u2028b'), 'a [2J   b');
});

test('counters as text', () => {
  assert.equal(statusWord('counted'), null);
  assert.equal(statusWord('unsupported')!.word, 'not supported');
  assert.equal(counterValue(1234567, 'faults'), '1,234,567');
  assert.equal(counterValue(2_500_000_000, 'ns'), '2.50 s');
  assert.equal(counterRate(12_340, 'faults'), '12.3 k/s');
  assert.equal(counterRate(1e9, 'ns'), '');
  assert.equal(derivedText({ value: 1.9987, label: 'CPUs utilized' }), '1.999 CPUs utilized');
  assert.equal(derivedText({ value: 2.514, label: '% of all branches' }), '2.51 % of all branches');
  assert.equal(derivedText({ value: NaN, label: 'insn per cycle' }), '');
  assert.equal(shareCounted(100), '');
  assert.equal(shareCounted(33.33), '33.3 %');
});

test('a line of rates: intervals of different lengths, and gaps without counts', () => {
  assert.equal(sparkPath({ start_ms: [], end_ms: [], value: [] }, 100, 10), '');
  // 10 per ms for 1 s, 5 per ms for 2 s; then a gap of 1 s, then 10 per ms again.
  const path = sparkPath(
    { start_ms: [0, 1000, 4000], end_ms: [1000, 3000, 5000], value: [10_000, 10_000, 10_000] },
    100,
    10,
  );
  assert.equal(path, 'M0.0 0.0H20.0L20.0 5.0H60.0M80.0 0.0H100.0');
});

test('thresholds of health', () => {
  assert.deepEqual(
    [79.9, 80, 94.9, 95].map((value) => level('cpu', value)),
    ['ok', 'warning', 'warning', 'critical'],
  );
  assert.deepEqual(
    [84, 85, 95].map((value) => level('mem', value)),
    ['ok', 'warning', 'critical'],
  );
  assert.deepEqual(
    [499, 500, 800].map((value) => level('oom', value)),
    ['ok', 'warning', 'critical'],
  );
  assert.equal(level('temp', undefined), 'ok');
  assert.equal(level('cpu', null), 'ok');
});

test('uploads are named after their content, and states are counted with the worst first', () => {
  const one = uploadId('libcity.so', 1000, 17, 'libcity.so@5566');
  assert.match(one, /^page-[0-9a-f]{16}$/);
  assert.equal(uploadId('libcity.so', 1000, 17, 'libcity.so@5566'), one);
  const others = [
    uploadId('libcity.sp', 1000, 17, 'libcity.so@5566'),
    uploadId('libcity.so', 1001, 17, 'libcity.so@5566'),
    uploadId('libcity.so', 1000, 18, 'libcity.so@5566'),
    uploadId('libcity.so', 1000, 17, 'other'),
  ];
  assert.equal(new Set([one, ...others]).size, 5);
  const row = (state: ModuleState, self_percent: number) =>
    ({ module: { state } as Module, self_percent }) as ModuleRow;
  assert.deepEqual(byState([row('debug_info', 40), row('mismatch', 10), row('debug_info', 50)]), [
    { state: 'mismatch', count: 1, share: 0.1 },
    { state: 'debug_info', count: 2, share: 0.9 },
  ]);
});

test('a print of a long file has the lines around the hottest one, and a short file is complete', () => {
  const file = (length: number) => Array.from({ length }, (_, i) => ({ line: i + 1 }));
  const ends = (lines: readonly { line: number }[]) => [lines[0]!.line, lines.at(-1)!.line];
  assert.deepEqual(ends(linesOnPaper(file(10), 5, 10)), [1, 10]);
  assert.deepEqual(ends(linesOnPaper(file(100), 50, 10)), [45, 54]);
  assert.deepEqual(ends(linesOnPaper(file(100), 3, 10)), [1, 10]);
  assert.deepEqual(ends(linesOnPaper(file(100), 100, 10)), [91, 100]);
  assert.deepEqual(ends(linesOnPaper(file(100), 0, 10)), [1, 10]);
});
