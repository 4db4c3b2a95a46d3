// What a person asks an agent to record: the fields of the form, what is sent of them, and what is wrong with them. Pure.
export interface RecordingDraft {
  pid: number; // 0: none chosen; wholeSystem
  comm: string;
  container?: string; // of the whole system, this alone: an id or a name, the path of a control group, numbers of CPUs
  cgroup?: string;
  cpus?: string;
  frequency: number;
  events: readonly string[]; // empty: the agent's own choice
  unwind: string;
  stackKib: number;
  kernel: boolean;
}

// In the place of a process.
export const wholeSystem = -1;
export const targetText = ({ pid, comm, cpus }: RecordingDraft): string => (pid > 0 ? `${comm} (${pid})` : cpus ? `${comm} on CPU ${cpus}` : comm);

// What is chosen in the list: a process, or a part of the machine.
export type Target = Pick<RecordingDraft, 'pid' | 'comm' | 'container' | 'cgroup' | 'cpus'>;
export const wide = (comm: string, part: Partial<Target> = {}): Target => ({ pid: wholeSystem, comm, container: '', cgroup: '', ...part });

export const usualDraft: RecordingDraft = { pid: 0, comm: '', frequency: 99, events: [], unwind: 'auto', stackKib: 16, kernel: true };

export const unwindWords: Record<string, string> = {
  auto: 'for each process what it needs, measured',
  fp: 'by frame pointers: least cost, broken without them',
  dwarf: 'by unwind tables: copies the top of the stack with each sample',
  lbr: 'by the CPU’s branch records: at most 32 frames',
  hybrid: 'innermost frames by tables, then frame pointers',
};

const stackBytes = (kib: number): number => Math.min(65528, Math.round(kib * 1024));
const whole = (value: number, from: number, to: number): boolean => Number.isInteger(value) && value >= from && value <= to;

// The first thing that is wrong, as a sentence; empty when nothing is.
export function problemOf(draft: RecordingDraft, maxFrequency = 0): string {
  if (!whole(draft.frequency, 1, 100000)) return 'The frequency is a whole number from 1 to 100,000 Hz.';
  if (!Number.isFinite(draft.stackKib) || draft.stackKib < 1 || draft.stackKib > 64) return 'The copied stack is 1 to 64 KiB.';
  if (draft.cpus && !/^\d[\d,-]*$/.test(draft.cpus)) return 'CPUs are numbers, as 0-3,6.';
  if (maxFrequency > 0 && draft.frequency > maxFrequency) return `The kernel allows ${maxFrequency} Hz: sampling will run at that.`;
  return '';
}
// A rate above the kernel's limit keeps no recording from starting: it is clamped, and said.
export const isValid = (draft: RecordingDraft): boolean => problemOf(draft) === '';

type Args = Record<string, unknown>;

function where({ pid, container, cgroup, cpus }: RecordingDraft): Args {
  if (pid !== wholeSystem) return pid ? { pid } : {};
  return { ...(container ? { container } : cgroup ? { cgroups: [cgroup] } : { all: true }), ...(cpus && { cpus }) };
}

// An agent that was started with --no-kernel stays without: only a person's own wish is sent.
export function startArgs(draft: RecordingDraft): Args {
  const args: Args = { ...where(draft), frequency: draft.frequency, unwind: draft.unwind };
  if (!draft.kernel) args['kernel'] = false;
  if (draft.unwind === 'dwarf') args['stack_size'] = stackBytes(draft.stackKib);
  if (draft.events.length > 0) args['events'] = draft.events;
  return args;
}

// Of `configure`: only what is not as before, so that nothing else is opened anew.
export function changeArgs(before: RecordingDraft, after: RecordingDraft): Args {
  const target = where(after);
  const args: Args = JSON.stringify(target) === JSON.stringify(where(before)) ? {} : target;
  if (after.frequency !== before.frequency) args['frequency'] = after.frequency;
  if (after.events.join() !== before.events.join() && after.events.length > 0) args['events'] = after.events;
  if (after.unwind !== before.unwind) args['unwind'] = after.unwind;
  if (after.stackKib !== before.stackKib) args['stack_size'] = stackBytes(after.stackKib);
  if (after.kernel !== before.kernel) args['kernel'] = after.kernel;
  return args;
}

const word = (text: string): string => (/^[\w./:,@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
// The same recording by the agent alone, into a file.
export function commandOf(draft: RecordingDraft): string {
  const { pid, container, cgroup, cpus, events, unwind } = draft;
  const target = pid !== wholeSystem ? ['--pid', `${pid}`] : container ? ['--container', container] : cgroup ? ['--cgroup', cgroup] : ['-a'];
  if (pid === wholeSystem && cpus) target.push('--cpus', cpus);
  if (events.length > 0) target.push('--events', events.join());
  if (unwind === 'dwarf') target.push('--stack-size', `${stackBytes(draft.stackKib)}`);
  if (!draft.kernel) target.push('--no-kernel');
  return ['flamewire-agent', ...target, '--frequency', `${draft.frequency}`, '--unwind', unwind, '--output', 'recording.flw'].map(word).join(' ');
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown, otherwise: number): number => (typeof value === 'number' ? value : otherwise);
const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []);

// The agent's `status` or `start` reply as a draft.
export function draftOfReply(reply: Readonly<Record<string, unknown>>): RecordingDraft {
  const target = text(reply['target']);
  const cgroup = texts(reply['cgroups'])[0];
  const cpus = Array.isArray(reply['cpus']) ? reply['cpus'].join() : '';
  return {
    pid: reply['all'] === true || cgroup ? wholeSystem : number(reply['pid'], 0),
    ...(cgroup && { cgroup }),
    ...(cpus && { cpus }),
    comm: /\((.*)\)$/.exec(target)?.[1] ?? target,
    frequency: number(reply['frequency'], 0) || usualDraft.frequency,
    events: texts(reply['events']),
    unwind: text(reply['unwind']) || usualDraft.unwind,
    stackKib: Math.round(number(reply['stack_size'], 16384) / 1024),
    kernel: reply['kernel'] !== false,
  };
}

// A draft that was kept by the browser, whatever became of it there.
export function draftOfStored(stored: unknown): RecordingDraft {
  if (typeof stored !== 'object' || stored === null) return usualDraft;
  const known = stored as Record<string, unknown>;
  const draft = {
    ...usualDraft,
    frequency: number(known['frequency'], usualDraft.frequency),
    events: texts(known['events']),
    unwind: text(known['unwind']) || usualDraft.unwind,
    stackKib: number(known['stackKib'], usualDraft.stackKib),
    kernel: known['kernel'] !== false,
  };
  return isValid(draft) ? draft : usualDraft;
}
