// Settings of a recording: the fields of the form, the arguments for the agent, and their problems. Pure.
export interface Picked {
  pid: number;
  comm: string;
}
export interface RecordingDraft {
  pid: number; // 0: none chosen; or wholeSystem
  comm: string;
  also?: readonly Picked[]; // additional processes
  container?: string; // limits wholeSystem to an id or name of a container, the path of a control group, or CPU numbers
  cgroup?: string;
  cpus?: string;
  frequency: number;
  events: readonly string[]; // if this and `others` are empty, the agent chooses
  others: string; // events that the user typed, in the syntax of --events
  filter: string; // the kernel's filter for tracepoints
  unwind: string;
  stackKib: number;
  kernel: boolean;
}

// Used in place of a pid.
export const wholeSystem = -1;

// The choice in the list: processes, or a part of the machine.
export type Target = Pick<RecordingDraft, 'pid' | 'comm' | 'also' | 'container' | 'cgroup' | 'cpus'>;
export const wide = (comm: string, part: Partial<Target> = {}): Target => ({
  pid: wholeSystem,
  comm,
  also: [],
  container: '',
  cgroup: '',
  ...part,
});
export const processTarget = ([first, ...also]: readonly Picked[]): Target => ({
  ...(first ?? { pid: 0, comm: '' }),
  also,
  container: '',
  cgroup: '',
  cpus: '',
});
export const pickedOf = ({ pid, comm, also = [] }: Target): Picked[] => (pid > 0 ? [{ pid, comm }, ...also] : []);

// Adds a process, or removes it if it is already chosen.
export function toggled(target: Target, { pid, comm }: Picked): Target {
  const now = pickedOf(target);
  const rest = now.filter((one) => one.pid !== pid);
  return processTarget(rest.length < now.length ? rest : [...now, { pid, comm }]);
}

const MOST_NAMED = 4;
export function targetText(target: Target): string {
  const { pid, comm, cpus } = target;
  if (pid <= 0) return cpus ? `${comm} on CPU ${cpus}` : comm;
  const all = pickedOf(target);
  const named = all.slice(0, MOST_NAMED).map((one) => `${one.comm} (${one.pid})`.trim());
  return named.join(', ') + (all.length > MOST_NAMED ? ` and ${all.length - MOST_NAMED} more` : '');
}
export const targetName = ({ comm, also = [] }: Target): string =>
  also.length > 0 ? `${comm} and ${also.length} more` : comm;

export const usualDraft: RecordingDraft = {
  pid: 0,
  comm: '',
  frequency: 99,
  events: [],
  others: '',
  filter: '',
  unwind: 'auto',
  stackKib: 16,
  kernel: true,
};

export const unwindWords: Record<string, string> = {
  auto: 'for each process what it needs, measured',
  fp: 'by frame pointers: least cost, broken without them',
  dwarf: 'by unwind tables: copies the top of the stack with each sample',
  lbr: 'by the CPU’s branch records: at most 32 frames',
  hybrid: 'innermost frames by tables, then frame pointers',
};

// Common events, offered even if the agent has not tried them.
export const commonEvents: Record<string, string> = {
  'off-cpu': 'asleep, by where it left',
  'run-queue': 'could run, waits for a CPU',
  'io-wait': 'asleep, waits for a device',
  'woken-by': 'who ended each sleep',
  'page-faults': 'first touches of memory',
  'minor-faults': 'of those, without a disk',
  'major-faults': 'of those, read from a disk',
};

export const eventsOf = ({ events, others }: RecordingDraft): string[] => {
  const typed = others.replace(/^[\s,]+|[\s,]+$/g, '');
  return typed ? [...events, typed] : [...events];
};
export const eventsText = (draft: RecordingDraft): string => eventsOf(draft).join(', ') || 'CPU cycles, or the clock';
// Matches a word, a colon, and no event modifiers: sched:sched_switch, but not cycles:u, and no breakpoint.
export const hasTracepoint = (draft: RecordingDraft): boolean =>
  /(^|,)\s*(?!mem:)[\w-]+:(?![ukp]*\s*(,|@|$))/.test(eventsOf(draft).join());
const filterOf = (draft: RecordingDraft): string => (hasTracepoint(draft) ? draft.filter.trim() : '');

const stackBytes = (kib: number): number => Math.min(65528, Math.round(kib * 1024));
const whole = (value: number, from: number, to: number): boolean =>
  Number.isInteger(value) && value >= from && value <= to;

// The first problem, as a sentence; '' without a problem.
export function problemOf(draft: RecordingDraft, maxFrequency = 0): string {
  if (!whole(draft.frequency, 1, 100000)) return 'The frequency must be a whole number from 1 to 100,000 Hz.';
  if (!Number.isFinite(draft.stackKib) || draft.stackKib < 1 || draft.stackKib > 64)
    return 'The copied stack is 1 to 64 KiB.';
  if (draft.cpus && !/^\d[\d,-]*$/.test(draft.cpus)) return 'CPUs are numbers, as 0-3,6.';
  if (maxFrequency > 0 && draft.frequency > maxFrequency)
    return `The kernel allows ${maxFrequency} Hz: sampling will run at that.`;
  return '';
}
// A rate above the kernel's limit is still valid: the agent clamps it, and the form shows a message.
export const isValid = (draft: RecordingDraft): boolean => problemOf(draft) === '';

type Args = Record<string, unknown>;

function where({ pid, also = [], container, cgroup, cpus }: RecordingDraft): Args {
  if (pid !== wholeSystem) return also.length > 0 ? { pids: [pid, ...also.map((one) => one.pid)] } : pid ? { pid } : {};
  return { ...(container ? { container } : cgroup ? { cgroups: [cgroup] } : { all: true }), ...(cpus && { cpus }) };
}

// Includes every field of the form, because the agent uses its own settings for omitted ones.
export function startArgs(draft: RecordingDraft): Args {
  const { frequency, unwind, kernel } = draft;
  const args: Args = { ...where(draft), frequency, unwind, events: eventsOf(draft), filter: filterOf(draft), kernel };
  if (unwind === 'dwarf') args['stack_size'] = stackBytes(draft.stackKib);
  return args;
}

// Arguments of `configure`: only the changes, so that the agent reopens nothing else.
export function changeArgs(before: RecordingDraft, after: RecordingDraft): Args {
  const target = where(after);
  const args: Args = JSON.stringify(target) === JSON.stringify(where(before)) ? {} : target;
  if (after.frequency !== before.frequency) args['frequency'] = after.frequency;
  const events = eventsOf(after);
  if (events.join() !== eventsOf(before).join()) args['events'] = events;
  // If a tracepoint does not work on the machine, the agent drops the event but keeps the filter.
  if (filterOf(after) !== (args['events'] ? before.filter : filterOf(before))) args['filter'] = filterOf(after);
  if (after.unwind !== before.unwind) args['unwind'] = after.unwind;
  if (after.stackKib !== before.stackKib) args['stack_size'] = stackBytes(after.stackKib);
  if (after.kernel !== before.kernel) args['kernel'] = after.kernel;
  return args;
}

const word = (text: string): string => (/^[\w./:,@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
// The command that makes the same recording with the agent alone, into a file.
export function commandOf(draft: RecordingDraft): string {
  const { pid, container, cgroup, cpus, unwind } = draft;
  const events = eventsOf(draft);
  const filter = filterOf(draft);
  const target =
    pid !== wholeSystem
      ? [
          '--pid',
          pickedOf(draft)
            .map((one) => one.pid)
            .join(),
        ]
      : container
        ? ['--container', container]
        : cgroup
          ? ['--cgroup', cgroup]
          : ['-a'];
  if (pid === wholeSystem && cpus) target.push('--cpus', cpus);
  if (events.length > 0) target.push('--events', events.join());
  if (filter) target.push('--filter', filter);
  if (unwind === 'dwarf') target.push('--stack-size', `${stackBytes(draft.stackKib)}`);
  if (!draft.kernel) target.push('--no-kernel');
  return [
    'flamewire-agent',
    ...target,
    '--frequency',
    `${draft.frequency}`,
    '--unwind',
    unwind,
    '--output',
    'recording.flw',
  ]
    .map(word)
    .join(' ');
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown, otherwise: number): number => (typeof value === 'number' ? value : otherwise);
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];

// Returns the names in "pid 7 (a)", or in "pids 7 (a), 8 (b) and 3 more"; '' for a process without a name.
function namesIn(target: string): string[] {
  const named = target.replace(/^pids? /, '').replace(/ and \d+ more$/, '');
  return named.split(/, (?=\d)/).map((one) => /\((.*)\)$/.exec(one)?.[1] ?? '');
}

type Replied = Readonly<Record<string, unknown>>;
const settingsOf = (
  reply: Replied,
): Pick<RecordingDraft, 'frequency' | 'filter' | 'unwind' | 'stackKib' | 'kernel'> => ({
  frequency: number(reply['frequency'], 0) || usualDraft.frequency,
  filter: text(reply['filter']),
  unwind: text(reply['unwind']) || usualDraft.unwind,
  stackKib: Math.round(number(reply['stack_size'], 16384) / 1024),
  kernel: reply['kernel'] !== false,
});

// The settings of an idle agent, from its `status`.
export function draftOfIdle(reply: Replied): Partial<RecordingDraft> {
  if (reply['state'] !== 'idle') return {};
  const list = text(reply['event_list']);
  const plain = /^[\w,-]*$/.test(list); // without tracepoints, modifiers and rates
  return {
    ...settingsOf(reply),
    events: plain ? list.split(',').filter((name) => name !== '') : [],
    others: plain ? '' : list,
  };
}

// The settings that the agent's command line changes from the defaults.
export function changedOfIdle(reply: Replied): Partial<RecordingDraft> {
  const usual: Partial<Record<string, unknown>> = { ...usualDraft };
  const isChanged = ([name, value]: [string, unknown]) => JSON.stringify(value) !== JSON.stringify(usual[name]);
  return Object.fromEntries(Object.entries(draftOfIdle(reply)).filter(isChanged));
}

// Of a recording. The names of events are how they were requested, except for traced ones and probes with an alias or a pattern.
function eventsOfReply(reply: Replied): Pick<RecordingDraft, 'events' | 'others'> {
  const list = text(reply['event_list']);
  return /(^|,)\s*(uprobe|usdt|kprobe|trace|trigger):/.test(list)
    ? { events: [], others: list }
    : { events: texts(reply['events']), others: '' };
}

// Converts the agent's reply to `status` or `start` into a draft.
export function draftOfReply(reply: Replied): RecordingDraft {
  const target = text(reply['target']);
  const cgroup = texts(reply['cgroups'])[0];
  const cpus = Array.isArray(reply['cpus']) ? reply['cpus'].join() : '';
  const pids = (Array.isArray(reply['pids']) ? reply['pids'] : []).map((pid) => number(pid, 0));
  const names = namesIn(target);
  return {
    pid: reply['all'] === true || cgroup ? wholeSystem : number(reply['pid'], 0),
    ...(cgroup && { cgroup }),
    ...(cpus && { cpus }),
    comm: names[0] || target,
    ...(pids.length > 1 && { also: pids.slice(1).map((pid, i) => ({ pid, comm: names[i + 1] ?? '' })) }),
    ...settingsOf(reply),
    ...eventsOfReply(reply),
  };
}

// Validates a draft that the browser stored, whose content may be arbitrary.
export function draftOfStored(stored: unknown): RecordingDraft {
  if (typeof stored !== 'object' || stored === null) return usualDraft;
  const known = stored as Record<string, unknown>;
  const draft = {
    ...usualDraft,
    frequency: number(known['frequency'], usualDraft.frequency),
    events: texts(known['events']),
    others: text(known['others']),
    filter: text(known['filter']),
    unwind: text(known['unwind']) || usualDraft.unwind,
    stackKib: number(known['stackKib'], usualDraft.stackKib),
    kernel: known['kernel'] !== false,
  };
  return isValid(draft) ? draft : usualDraft;
}
