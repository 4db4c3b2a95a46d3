// CPU time of the workers of the pages that this process opened, from the kernel. Chromium reports only main threads.
import { readdirSync, readFileSync } from 'node:fs';

const NAME = 'DedicatedWorker'; // the kernel stores 15 characters

function parentOf(pid) {
  // "pid (name) state parent", where the name can contain any characters.
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

function isOurs(pid) {
  for (let at = pid; at > 1; at = parentOf(at)) if (at === process.pid) return true;
  return false;
}

// Null if the process or thread has ended meanwhile.
function orNull(read) {
  try {
    return read();
  } catch {
    return null;
  }
}

// A clock (ms) of the workers that exist now.
export function workerClock() {
  const files = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    for (const task of (orNull(() => isOurs(Number(pid))) && orNull(() => readdirSync(`/proc/${pid}/task`))) || [])
      if (orNull(() => readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8').startsWith(NAME))) files.push(`/proc/${pid}/task/${task}/schedstat`);
  if (files.length === 0) throw new Error(`no thread ${NAME}: does this Chromium name its workers differently?`);
  return () => files.reduce((sum, file) => sum + Number(orNull(() => readFileSync(file, 'utf8').split(' ')[0]) ?? 0) / 1e6, 0);
}
