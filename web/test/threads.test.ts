// Texts of the threads table, computed by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  barsPath,
  cpuSource,
  cpuText,
  cpuTitle,
  placeText,
  shortId,
  stackedStates,
  wakeUpNote,
} from '../src/text/threads';

test('CPU time shows its source', () => {
  assert.equal(cpuText({ cpu_percent: 52.345, cpu_from: 'counted' }), '52.3 %');
  assert.equal(cpuText({ cpu_percent: 52.345, cpu_from: 'clock_samples' }), '~52.3 %');
  assert.equal(cpuText({ cpu_percent: 152, cpu_from: 'share' }), '≈152.0 %');
  assert.equal(cpuText({ cpu_percent: null, cpu_from: 'none' }), '–');
  assert.match(cpuTitle({ cpu_from: 'share' }), /count by thread/);
  assert.equal(cpuSource([{ cpu_from: 'counted' }, { cpu_from: 'counted' }]), 'CPU as counted');
  assert.equal(cpuSource([{ cpu_from: 'counted' }, { cpu_from: 'share' }]), '');
  assert.equal(cpuSource([]), '');
});

test('bars share one scale', () => {
  assert.equal(barsPath([2, 0, 4], 4, 30, 10), 'M0 10V5H10V10H20V0H30V10Z');
  assert.equal(barsPath([9], 4, 30, 10), 'M0 10V0H30V10Z');
  assert.equal(barsPath([], 4, 30, 10), '');
  assert.equal(barsPath([0], 0, 30, 10), '');
});

test('the place of a thread is shown in short form', () => {
  const id = '0123456789abcdef'.repeat(4);
  assert.equal(shortId(id), '0123456789ab');
  assert.equal(shortId('web-frontend'), 'web-frontend');
  assert.equal(placeText({}), '');
  assert.equal(placeText({ container_id: id, pod_uid: 'p', cgroup: '/x' }), 'container 0123456789ab, pod p, cgroup /x');
});

test('a recording without woken-by reports that Runnable lacks wake-up latency', () => {
  assert.match(wakeUpNote([{ name: 'cycles' }, { name: 'off-cpu' }]), /woken-by/);
  assert.equal(wakeUpNote([{ name: 'off-cpu' }, { name: 'woken-by' }]), '');
});

test('states are stacked', () => {
  const row = {
    tid: 1,
    pid: 1,
    comm: 'a',
    run: 3,
    runnable: 1,
    blocked: 2,
    io_wait: 0,
    run_slices: [1, 2],
    runnable_slices: [1, 0],
    blocked_slices: [0, 2],
    io_wait_slices: [0, 0],
  };
  assert.deepEqual(stackedStates(row), [
    [1, 2],
    [2, 2],
    [2, 4],
    [2, 4],
  ]);
});
