// Events that an agent offers: the request, and adding them to a typed list. Pure.
import { pickedOf, type Target, wholeSystem } from './recording';

export type EventKind = 'tracepoint' | 'function' | 'usdt' | 'kernel-function';
export const kindNames: Record<EventKind, string> = {
  tracepoint: 'Tracepoints',
  function: 'Functions',
  usdt: 'USDT probes',
  'kernel-function': 'Kernel functions',
};
export const isInFile = (kind: EventKind): boolean => kind === 'function' || kind === 'usdt';

// Whose files are listed, as parameters of the request.
export interface EventTarget {
  pid?: string;
  container?: string;
  cgroup?: string;
}
export function eventTarget(target: Target): EventTarget {
  const pids = pickedOf(target).map((one) => one.pid);
  if (pids.length > 0) return { pid: pids.join() };
  if (target.pid !== wholeSystem) return {};
  return target.container ? { container: target.container } : target.cgroup ? { cgroup: target.cgroup } : {};
}

// Where an event is in a list such as "cycles,uprobe:f@"/a,b"": between commas outside of quotes. -1: it is not there.
function placeOf(list: string, event: string): number {
  let quoted = false;
  let start = true;
  for (let at = 0; at < list.length; at++) {
    if (start && list[at] === ' ') continue;
    const end = at + event.length;
    if (start && list.startsWith(event, at) && /^\s*(,|$)/.test(list.slice(end))) return at;
    start = list[at] === ',' && !quoted;
    if (list[at] === '"') quoted = !quoted;
  }
  return -1;
}

export const hasEvent = (list: string, event: string): boolean => placeOf(list, event) >= 0;

// Adds an event to the end of a list, or removes it.
export function toggledEvent(list: string, event: string): string {
  const at = placeOf(list, event);
  if (at < 0) return [list.replace(/[\s,]+$/, ''), event].filter(Boolean).join(',');
  const before = list.slice(0, at).replace(/[\s,]+$/, '');
  const after = list.slice(at + event.length).replace(/^[\s,]+/, '');
  return [before, after].filter(Boolean).join(',');
}

export interface EventDetails {
  places: readonly string[]; // "offset 0x98930 of /usr/lib/libc.so.6, about 0.6 µs per hit"
  fields: readonly { name: string; type: string }[];
}
// Parses the description of one event: indented lines below its name.
export function detailsOf(description: string): EventDetails {
  const lines = description.split('\n').filter((line) => line.startsWith('  '));
  const isPlace = (line: string) => line.startsWith('  at offset ');
  return {
    places: lines.filter(isPlace).map((line) => line.slice(5).replace(/ us per hit$/, ' µs per hit')),
    fields: lines
      .filter((line) => !isPlace(line))
      .map((line) => {
        const colon = line.indexOf(': ');
        return { name: line.slice(2, colon), type: line.slice(colon + 2) };
      }),
  };
}
