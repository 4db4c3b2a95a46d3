// CPU time of the workers of the pages that this process opened, by the kernel: Chromium tells only that of a page's main thread.
import { readdirSync, readFileSync } from 'node:fs';

const NAME = 'DedicatedWorker'; // 15 letters is all that the kernel keeps

function parentOf(pid) {
  // pid (name) state parent: the name may have anything in it.
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function isOurs(pid) {
  for (let at = pid; at > 1; at = parentOf(at)) if (at === process.pid) return true;
  return false;
}

// Null when what is looked at has ended meanwhile.
function orNull(read) {
  try {
    return read();
  } catch {
    return null;
  }
}

// A clock of the workers there are now (ms).
export function workerClock() {
  const files = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    for (const task of (orNull(() => isOurs(Number(pid))) && orNull(() => readdirSync(`/proc/${pid}/task`))) || [])
      if (orNull(() => readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8').startsWith(NAME))) files.push(`/proc/${pid}/task/${task}/schedstat`);
  if (files.length === 0) throw new Error(`no thread ${NAME}: does this Chromium call its workers otherwise?`);
  return () => files.reduce((sum, file) => sum + Number(orNull(() => readFileSync(file, 'utf8').split(' ')[0]) ?? 0) / 1e6, 0);
}
