// Imports files of other tools as sessions, one at a time: sends slices, waits for the server, opens the session.
import { signal } from '@preact/signals';

import { api } from '../api/client';
import type { Import } from '../api/types';
import { sendFile } from '../api/upload';
import { uploadId } from '../text/modules';
import { compareThreads } from './compare';
import { openSession } from './view';

export interface Importing {
  name: string;
  stage: 'sending' | 'reading' | 'failed';
  done: number; // bytes
  size: number;
  error: string;
}

export const importing = signal<Importing | null>(null);

const LOOK_EVERY_MS = 60;
let running: AbortController | null = null;
// Cancels what was begun on the server.
let giveUp: () => Promise<unknown> = () => Promise.resolve();

const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

async function ended(id: string, abort: AbortSignal): Promise<Import> {
  for (;;) {
    const found = (await api.imports(abort)).imports.find((one) => one.id === id);
    if (!found) throw new Error('The server no longer has this import: try it again');
    if (found.state !== 'running') return found;
    importing.value = { ...importing.value!, stage: 'reading', done: found.read_bytes, size: found.total_bytes };
    await pause(LOOK_EVERY_MS);
  }
}

// Whether the session was imported from a file with two columns. They are its threads 1 and 2
// (src/profile/formats/collapsed_import.h).
async function hasTwoColumns(id: string, abort: AbortSignal): Promise<boolean> {
  try {
    const { notices } = await api.session(id, abort);
    return notices?.some((notice) => notice.code === 'import-two-sides') ?? false;
  } catch {
    return false; // the import itself succeeded
  }
}

export async function importFile(file: File): Promise<void> {
  running?.abort();
  const controller = new AbortController();
  running = controller;
  const abort = controller.signal;
  giveUp = () => Promise.resolve();
  importing.value = { name: file.name, stage: 'sending', done: 0, size: file.size, error: '' };
  try {
    if (file.size === 0) throw new Error(`${file.name} is empty`);
    const id = uploadId(file.name, file.size, file.lastModified, 'import');
    giveUp = () => api.dropUpload(id);
    await sendFile(
      id,
      file,
      (sent, size) => {
        if (!abort.aborted) importing.value = { ...importing.value!, done: sent, size };
      },
      abort,
    );
    if (abort.aborted) return;
    const begun = await api.beginImport(id, file.name);
    if (abort.aborted) {
      // The import was cancelled while the server began it.
      await api.cancelImport(begun.id);
      return;
    }
    giveUp = () => api.cancelImport(begun.id);
    const result = await ended(begun.id, abort);
    if (abort.aborted) return;
    if (result.state === 'cancelled') throw new Error('The import was cancelled elsewhere: import the file again');
    if (result.state === 'failed') throw new Error(result.problem);
    const twoColumns = await hasTwoColumns(result.session, abort);
    if (abort.aborted) return;
    importing.value = null;
    openSession(result.session);
    if (twoColumns) compareThreads(1, 2);
  } catch (error) {
    if (abort.aborted) return;
    importing.value = {
      ...importing.value!,
      stage: 'failed',
      error: error instanceof Error ? error.message : String(error),
    };
  }
}

// For a failed import, this only closes the message.
export function stopImport(): void {
  const unfinished = importing.value !== null && importing.value.stage !== 'failed';
  running?.abort();
  importing.value = null;
  // If the import ended meanwhile, nothing is left to cancel.
  if (unfinished) giveUp().catch(() => undefined);
}
