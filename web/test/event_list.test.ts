import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detailsOf, eventTarget, hasEvent, toggledEvent } from '../src/text/event_list';
import { processTarget, wholeSystem, wide } from '../src/text/recording';

test('an event is added to a list and removed from it', () => {
  const malloc = 'uprobe:malloc@"/lib/a, b/libc.so.6"';
  assert.equal(toggledEvent('', malloc), malloc);
  assert.equal(toggledEvent(' cycles:u, ', malloc), ` cycles:u,${malloc}`);
  const list = `cycles:u,${malloc}, sched:sched_switch`;
  assert.ok(hasEvent(list, malloc) && hasEvent(list, 'sched:sched_switch') && hasEvent(list, 'cycles:u'));
  assert.equal(toggledEvent(list, malloc), 'cycles:u,sched:sched_switch');
  assert.equal(toggledEvent(list, 'sched:sched_switch'), `cycles:u,${malloc}`);
  assert.equal(toggledEvent(toggledEvent(list, 'cycles:u'), 'cycles:u'), `${malloc}, sched:sched_switch,cycles:u`);
});

test('a part of an event is another event', () => {
  const list = 'uprobe:f@"/x,y",sched:sched_switch/prev_pid == 1/,sched:sched_wakeup_new';
  for (const other of ['y"', 'uprobe:f', 'sched:sched_switch', 'sched:sched_wakeup', 'sched_wakeup_new'])
    assert.ok(!hasEvent(list, other), other);
  assert.equal(toggledEvent(list, 'sched:sched_switch'), `${list},sched:sched_switch`);
});

test('whose files are listed', () => {
  assert.deepEqual(eventTarget(processTarget([])), {});
  assert.deepEqual(
    eventTarget(
      processTarget([
        { pid: 7, comm: 'a' },
        { pid: 9, comm: 'b' },
      ]),
    ),
    { pid: '7,9' },
  );
  assert.deepEqual(eventTarget(wide('whole system')), {});
  assert.deepEqual(eventTarget({ pid: wholeSystem, comm: '', container: '0123' }), { container: '0123' });
  assert.deepEqual(eventTarget({ pid: wholeSystem, comm: '', cgroup: '/x' }), { cgroup: '/x' });
});

test('details of a description', () => {
  assert.deepEqual(detailsOf('sched:sched_process_exec: tracepoint\n  filename: __data_loc char[]\n  pid: pid_t\n'), {
    places: [],
    fields: [
      { name: 'filename', type: '__data_loc char[]' },
      { name: 'pid', type: 'pid_t' },
    ],
  });
  assert.deepEqual(
    detailsOf(
      'usdt:a:b@"/x": probe\n  at offset 0x10 of /x, about 0.6 us per hit\n  at offset 0x20 of /x\n  arg1: s32\n',
    ),
    {
      places: ['offset 0x10 of /x, about 0.6 µs per hit', 'offset 0x20 of /x'],
      fields: [{ name: 'arg1', type: 's32' }],
    },
  );
});
