// A page that is saved as one file: where it is from, and the view that was saved.
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

// Shows the view that was saved in the file.
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
  // A reload keeps the view in the address.
  if (!location.hash) await showSaved('replace');
}
