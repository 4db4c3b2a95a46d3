// A page that is one file: what it was made of, and the way back to it.
import { signal } from '@preact/signals';
import { isSaved, savedAnswers } from '../api/saved';
import { follow } from './session';
import { parseHash } from '../model/view_state';
import { setView } from './view';

export { isSaved };

export interface SavedFile {
  made: string;
  version: string;
}
export const savedFile = signal<SavedFile | null>(null);

// The view that is in the file.
export async function showSaved(how: 'push' | 'replace' = 'push'): Promise<void> {
  const { page, session, event, start, end, pid, tid, container, pod, cgroup } = await savedAnswers();
  const numbers = (text: string) => (text ? text.split(',').map(Number) : []);
  const time = (text: string) => (text ? Number(text) : null);
  setView(
    {
      ...parseHash(page),
      session: session.id,
      event,
      start: time(start),
      end: time(end),
      pids: numbers(pid),
      tids: numbers(tid),
      container,
      pod,
      cgroup,
    },
    how,
  );
}

export async function openSaved(): Promise<void> {
  const saved = await savedAnswers();
  savedFile.value = { made: saved.made, version: saved.version };
  follow(saved.session.id);
  // A reload stays where it was.
  if (!location.hash) await showSaved('replace');
}
