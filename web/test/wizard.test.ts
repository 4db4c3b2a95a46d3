// The guide's steps, the requests for its form, and the list of what works on a machine.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLoopback, parseAddress } from '../src/text/address';
import { capabilitiesOf, findingLines, ordered, type Finding } from '../src/text/capabilities';
import {
  changeArgs,
  commandOf,
  changedOfIdle,
  draftOfIdle,
  draftOfReply,
  draftOfStored,
  hasTracepoint,
  isValid,
  problemOf,
  processTarget,
  startArgs,
  targetName,
  targetText,
  toggled,
  usualDraft,
  wholeSystem,
  wide,
} from '../src/text/recording';
import {
  after,
  before,
  formatRemembered,
  freshWizard,
  isLater,
  missing,
  parseRemembered,
  reachable,
  steps,
} from '../src/text/wizard';

test('addresses', () => {
  assert.deepEqual(parseAddress('board.local'), { host: 'board.local', port: 9999 });
  assert.deepEqual(parseAddress(' 10.0.0.7:81 '), { host: '10.0.0.7', port: 81 });
  assert.deepEqual(parseAddress('[::1]:5'), { host: '::1', port: 5 });
  for (const wrong of ['', ':5', 'a b', 'http://x', 'a:0', 'a:65536', 'a:x'])
    assert.equal(parseAddress(wrong), null, wrong);
  assert.deepEqual(['127.0.0.1', '127.1.2.3', '::1', '0.0.0.0', '10.0.0.1'].map(isLoopback), [
    true,
    true,
    true,
    false,
    false,
  ]);
});

const usualArgs = { frequency: 99, unwind: 'auto', events: [], filter: '', kernel: true };

test('start sends everything, dwarf also its stack size, and a change only what changed', () => {
  const draft = { ...usualDraft, pid: 7, comm: 'demo' };
  assert.deepEqual(startArgs(draft), { pid: 7, ...usualArgs });
  assert.deepEqual(startArgs({ ...draft, unwind: 'dwarf', stackKib: 64, events: ['cpu-clock'], kernel: false }), {
    pid: 7,
    frequency: 99,
    unwind: 'dwarf',
    stack_size: 65528,
    events: ['cpu-clock'],
    filter: '',
    kernel: false,
  });
  assert.deepEqual(changeArgs(draft, draft), {});
  assert.deepEqual(changeArgs(draft, { ...draft, pid: 8, frequency: 499, stackKib: 8 }), {
    pid: 8,
    frequency: 499,
    stack_size: 8192,
  });
  assert.deepEqual(changeArgs(draft, { ...draft, pid: 0, events: [] }), {});
  // Removing the last event leaves the default one.
  assert.deepEqual(changeArgs({ ...draft, events: ['off-cpu'] }, draft), { events: [] });
});

test('a recording uses the options of the agent unless a person changes them', () => {
  const idle = { state: 'idle', frequency: 499, unwind: 'fp', stack_size: 32768, filter: '', kernel: false };
  const own = { frequency: 499, unwind: 'fp', stackKib: 32, filter: '', kernel: false };
  assert.deepEqual(draftOfIdle({ ...idle, event_list: '', events: ['cycles', 'cpu-clock'] }), {
    ...own,
    events: [],
    others: '',
  });
  assert.deepEqual(draftOfIdle({ ...idle, event_list: 'off-cpu,page-faults' }), {
    ...own,
    events: ['off-cpu', 'page-faults'],
    others: '',
  });
  const special = 'sched:sched_switch/prev_pid == 1, 2/,cycles';
  assert.deepEqual(draftOfIdle({ ...idle, event_list: special }), { ...own, events: [], others: special });
  // An older agent reports less, and a recording agent reports the current recording, not the next one.
  assert.deepEqual(draftOfIdle({ state: 'idle' }), {
    frequency: 99,
    unwind: 'auto',
    stackKib: 16,
    filter: '',
    kernel: true,
    events: [],
    others: '',
  });
  assert.deepEqual(draftOfIdle({ ...idle, state: 'profiling', event_list: 'off-cpu' }), {});
  assert.deepEqual(changedOfIdle({ ...idle, unwind: 'auto', event_list: '', kernel: false }), {
    frequency: 499,
    stackKib: 32,
    kernel: false,
  });
  assert.deepEqual(changedOfIdle({ state: 'idle' }), {});
});

test('several processes in one recording', () => {
  const [a, b] = [
    { pid: 7, comm: 'demo' },
    { pid: 9, comm: 'nginx' },
  ];
  const both = toggled(toggled(processTarget([]), a), b);
  const draft = { ...usualDraft, ...both };
  assert.deepEqual(startArgs(draft), { pids: [7, 9], ...usualArgs });
  assert.equal(targetText(draft), 'demo (7), nginx (9)');
  assert.equal(targetName(draft), 'demo and 1 more');
  assert.match(commandOf(draft), / --pid 7,9 /);
  // Removing the first process leaves the other one, and removing that leaves none.
  assert.deepEqual(startArgs({ ...usualDraft, ...toggled(both, a) }), { pid: 9, ...usualArgs });
  assert.equal(toggled(toggled(both, a), b).pid, 0);
  assert.deepEqual(toggled(wide('the whole system'), b), processTarget([b]));
  assert.deepEqual(startArgs({ ...draft, ...wide('the whole system') }), { all: true, ...usualArgs });
  const many = processTarget([1, 2, 3, 4, 5, 6].map((pid) => ({ pid, comm: `p${pid}` })));
  assert.equal(targetText(many), 'p1 (1), p2 (2), p3 (3), p4 (4) and 2 more');
  const running = draftOfReply({ pid: 7, pids: [7, 9], target: 'pids 7 (demo), 9 (a (b))' });
  assert.deepEqual([running.pid, running.comm, running.also], [7, 'demo', [{ pid: 9, comm: 'a (b)' }]]);
  assert.deepEqual(changeArgs(running, running), {});
  assert.deepEqual(changeArgs(running, { ...running, ...processTarget([a]) }), { pid: 7 });
  assert.deepEqual(draftOfReply({ pid: 7, pids: [7, 8, 9], target: 'pids 7 (x) and 2 more' }).also, [
    { pid: 8, comm: '' },
    { pid: 9, comm: '' },
  ]);
});

test('typed events, and a filter for tracepoints', () => {
  const draft = { ...usualDraft, pid: 7 };
  const typed = {
    ...draft,
    events: ['off-cpu'],
    others: ' sched:sched_switch/prev_pid == 1, 2/, r01c2 ,',
    filter: ' prev_pid == 42 ',
  };
  assert.deepEqual(startArgs(typed), {
    pid: 7,
    frequency: 99,
    unwind: 'auto',
    events: ['off-cpu', 'sched:sched_switch/prev_pid == 1, 2/, r01c2'],
    filter: 'prev_pid == 42',
    kernel: true,
  });
  for (const [others, is] of [
    ['sched:sched_switch', true],
    ['cycles, syscalls:sys_enter_read@5', true],
    ['cycles:u', false],
    ['cpu-clock:k@99,cycles:ppp', false],
    ['cpu/event=0x3c/', false],
    ['cycles, mem:counter:w', false],
    ['', false],
  ] as const)
    assert.equal(hasTracepoint({ ...draft, others }), is, others);
  // The filter needs a tracepoint.
  assert.equal(startArgs({ ...typed, others: 'cycles:u' })['filter'], '');
  assert.match(
    commandOf({ ...draft, others: 'sched:sched_switch', filter: 'prev_pid == 42' }),
    / --events sched:sched_switch --filter 'prev_pid == 42' /,
  );
  const running = draftOfReply({ pid: 7, events: ['sched:sched_switch'], filter: 'prev_pid == 42' });
  assert.deepEqual(changeArgs(running, running), {});
  assert.deepEqual(changeArgs(running, { ...running, filter: 'prev_pid == 43' }), { filter: 'prev_pid == 43' });
  assert.deepEqual(changeArgs(running, { ...running, events: ['cycles'] }), { events: ['cycles'], filter: '' });
  assert.deepEqual(changeArgs(running, { ...running, others: 'cycles' }), { events: ['sched:sched_switch', 'cycles'] });
  // The name of a probe may be an alias, which is not an event.
  const list = 'cpu-clock,uprobe:malloc@"/lib/libc.so.6"/size > 9/size=$arg1/alias=large/';
  const probed = draftOfReply({ pid: 7, events: ['cpu-clock', 'large'], event_list: list });
  assert.deepEqual([probed.events, probed.others], [[], list]);
  assert.equal(hasTracepoint(probed), true);
  const kernel = 'kprobe:vfs_read/count > 9/count=$arg3/alias=large/';
  assert.equal(draftOfReply({ pid: 7, events: ['large'], event_list: kernel }).others, kernel);
  const traced = 'cpu-clock,trace:sched:sched_switch';
  assert.equal(
    draftOfReply({ pid: 7, events: ['cpu-clock', 'sched:sched_switch'], event_list: traced }).others,
    traced,
  );
});

test('the whole system instead of a process', () => {
  const draft = { ...usualDraft, pid: wholeSystem, comm: 'the whole system' };
  assert.deepEqual(startArgs(draft), { all: true, ...usualArgs });
  assert.deepEqual(changeArgs({ ...usualDraft, pid: 5 }, draft), { all: true });
  assert.deepEqual(changeArgs(draft, { ...draft, pid: 5 }), { pid: 5 });
  assert.deepEqual(changeArgs(draft, draft), {});
  assert.equal(draftOfReply({ pid: 0, all: true, target: 'system-wide' }).pid, wholeSystem);
  assert.equal(targetText(draftOfReply({ pid: 0, all: true, target: 'system-wide' })), 'system-wide');
  assert.equal(targetText({ ...usualDraft, pid: 7, comm: 'demo' }), 'demo (7)');
  assert.deepEqual(
    steps.filter((step) => reachable(step, { ...freshWizard, agent: 'a', draft }, true)),
    [...steps],
  );
});

test('a part of the machine: a container, a control group, some CPUs', () => {
  const whole = { ...usualDraft, ...wide('the whole system') };
  const container = { ...whole, ...wide('container c0ffee', { container: 'c0ffee11' }) };
  const group = { ...whole, ...wide('cgroup a b', { cgroup: 'a b' }), cpus: '0-3,6' };
  assert.deepEqual(startArgs(container), { container: 'c0ffee11', ...usualArgs });
  assert.deepEqual(startArgs({ ...whole, cpus: '2' }), { all: true, cpus: '2', ...usualArgs });
  assert.deepEqual(startArgs(group), { cgroups: ['a b'], cpus: '0-3,6', ...usualArgs });
  assert.deepEqual(startArgs({ ...group, pid: 7 }), { pid: 7, ...usualArgs });
  assert.deepEqual(changeArgs(whole, container), { container: 'c0ffee11' });
  assert.deepEqual(changeArgs(container, { ...whole, cpus: '1' }), { all: true, cpus: '1' });
  assert.deepEqual(changeArgs(group, group), {});
  assert.equal(targetText(group), 'cgroup a b on CPU 0-3,6');
  assert.equal(isValid(group), true);
  for (const cpus of ['all', '-1', '1 2', '0;1']) assert.match(problemOf({ ...whole, cpus }), /numbers/, cpus);
  const running = draftOfReply({ pid: 0, all: false, cgroups: ['/sys/fs/cgroup/x'], cpus: [1, 2], target: 'cgroup x' });
  assert.deepEqual(startArgs(running), { cgroups: ['/sys/fs/cgroup/x'], cpus: '1,2', ...usualArgs });
  assert.equal(
    commandOf({ ...usualDraft, pid: 7 }),
    'flamewire-agent --pid 7 --frequency 99 --unwind auto --output recording.flw',
  );
  assert.equal(
    commandOf({ ...whole, cpus: '0-1', events: ['cycles', 'faults'], kernel: false }),
    'flamewire-agent -a --cpus 0-1 --events cycles,faults --no-kernel --frequency 99 --unwind auto --output recording.flw',
  );
  assert.equal(
    commandOf({ ...group, unwind: 'dwarf' }),
    "flamewire-agent --cgroup 'a b' --cpus 0-3,6 --stack-size 16384 --frequency 99 --unwind dwarf --output recording.flw",
  );
});

test('drafts from a reply and from the storage of the browser', () => {
  const draft = draftOfReply({
    pid: 42,
    target: 'pid 42 (a (b))',
    frequency: 199,
    events: ['cycles'],
    unwind: 'dwarf',
    stack_size: 65528,
    kernel: false,
  });
  assert.deepEqual(draft, {
    pid: 42,
    comm: 'a (b)',
    frequency: 199,
    events: ['cycles'],
    others: '',
    filter: '',
    unwind: 'dwarf',
    stackKib: 64,
    kernel: false,
  });
  assert.deepEqual(draftOfReply({}), usualDraft);
  for (const broken of [null, 5, [], { frequency: 'x' }, { frequency: -1 }, { stackKib: 1e9 }, { events: [5] }])
    assert.deepEqual(draftOfStored(broken), usualDraft);
  assert.equal(draftOfStored({ frequency: 499, pid: 5 }).pid, 0);
});

test('errors of a form', () => {
  assert.equal(problemOf(usualDraft), '');
  assert.match(problemOf({ ...usualDraft, frequency: 0 }), /whole number/);
  assert.match(problemOf({ ...usualDraft, frequency: 1.5 }), /whole number/);
  assert.match(problemOf({ ...usualDraft, stackKib: 65 }), /KiB/);
  assert.match(problemOf({ ...usualDraft, frequency: 5000 }, 4000), /4000/);
  assert.equal(isValid({ ...usualDraft, frequency: 5000 }), true);
});

test('steps are in order, and each needs the choices of earlier ones', () => {
  assert.equal(after('connect'), 'process');
  assert.equal(after('start'), 'start');
  assert.equal(before('connect'), 'connect');
  assert.ok(isLater('start', 'files') && !isLater('files', 'files') && !isLater('check', 'files'));
  const alone = freshWizard;
  assert.deepEqual(
    steps.filter((step) => reachable(step, alone, false)),
    ['connect'],
  );
  assert.match(missing(alone, false), /agent/);
  const connected = { ...freshWizard, agent: 'a' };
  assert.deepEqual(
    steps.filter((step) => reachable(step, connected, true)),
    ['connect', 'process'],
  );
  assert.equal(missing(connected, true), '');
  assert.match(missing({ ...connected, step: 'process' }, true), /process/);
  const chosen = { ...connected, draft: { ...usualDraft, pid: 5 } };
  assert.deepEqual(
    steps.filter((step) => reachable(step, chosen, true)),
    [...steps],
  );
  // Without the agent you can go back, but not on.
  assert.deepEqual(
    steps.filter((step) => reachable(step, { ...chosen, step: 'check' }, false)),
    ['connect', 'process', 'check'],
  );
});

test('what the browser stores', () => {
  const draft = {
    ...usualDraft,
    pid: 9,
    comm: 'x',
    frequency: 499,
    others: 'sched:sched_switch',
    filter: 'prev_pid > 1',
  };
  const kept = parseRemembered(formatRemembered({ seen: true, draft }));
  assert.deepEqual(kept, { seen: true, draft: { ...draft, pid: 0, comm: '' } });
  for (const broken of [null, '', '{', '5', '[]', '{"seen":"yes"}'])
    assert.deepEqual(parseRemembered(broken), { seen: false, draft: usualDraft });
});

const finding = (patch: Partial<Finding>): Finding => ({
  code: 'event',
  name: '',
  works: false,
  text: 't',
  remedy: '',
  ...patch,
});

test('events with the same failure are one line; failures with a remedy come first', () => {
  const lines = findingLines([
    finding({ code: 'perf-events', works: true, text: 'fine' }),
    finding({ name: 'cycles', text: 'this CPU or kernel has no event cycles' }),
    finding({ name: 'instructions', text: 'this CPU or kernel has no event instructions' }),
    finding({ code: 'kernel-samples', text: 'no kernel', remedy: 'sysctl -w x=1' }),
  ]);
  assert.deepEqual(
    ordered(lines).map((line) => line.text),
    ['no kernel', 'this CPU or kernel has no event cycles, instructions', 'fine'],
  );
  const known = capabilitiesOf({
    record_events: ['a', 5],
    unwind_modes: ['fp'],
    max_frequency: 1000,
    perf_events: false,
    findings: [null, { code: 'x', text: 'y', works: 'no' }],
  });
  assert.deepEqual(known, {
    events: ['a'],
    unwind: ['fp'],
    findings: [finding({ code: 'x', text: 'y' })],
    perf: false,
    maxFrequency: 1000,
    pmus: [],
  });
  assert.deepEqual(capabilitiesOf(undefined).events, []);
});
