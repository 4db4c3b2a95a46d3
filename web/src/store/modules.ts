// The modules of the view, and the files that the user provides for them.
import { signal } from '@preact/signals';
import { api, ApiError, orEmpty } from '../api/client';
import { sendFile } from '../api/upload';
import type { Module } from '../api/types';
import { uploadId } from '../text/modules';
import { dataVersion, refreshAll } from './data';
import { sessionListVersion } from './live';
import { createQuery } from './query';
import { currentId, filter } from './session';
import { toast } from './ui';
import { tab, view } from './view';

const given = signal(0);

export const modules = createQuery({
  key: () => (currentId.value && tab.value === 'modules' ? JSON.stringify(filter.value) : null),
  version: () => `${dataVersion()}/${given.value}`,
  scope: () => currentId.value,
  fetch: (abort) => orEmpty(api.modules(filter.peek(), abort)),
  intervalMs: 700,
  rows: true,
});

// Identifies a module both in the address bar and in the page.
export const moduleKey = (module: Module) => (module.build_id ? `${module.name}@${module.build_id}` : module.path);
export const isShown = (module: Module) => view.value.about === moduleKey(module);

export interface Giving {
  module: string; // its moduleKey
  sent: number;
  size: number;
  error: string;
  busy: boolean;
}
export const giving = signal<Giving | null>(null);
let running: AbortController | null = null;

const saying = (error: unknown) => (error instanceof ApiError ? error.message : String(error));

async function give(module: Module, file: { file: string } | { upload: string }): Promise<void> {
  const answer = await api.giveModule(currentId.peek(), { path: module.path, build_id: module.build_id, ...file });
  given.value += 1;
  sessionListVersion.value += 1;
  refreshAll();
  toast(
    answer.module.state === 'debug_info'
      ? `${module.name}: names and lines are read from it`
      : `${module.name}: its names are being read again`,
  );
}

async function attempt(module: Module, work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
  running?.abort();
  const controller = new AbortController();
  running = controller;
  giving.value = { module: moduleKey(module), sent: 0, size: 0, error: '', busy: true };
  try {
    await work(controller.signal);
    if (running === controller) giving.value = null;
    return true;
  } catch (error) {
    if (controller.signal.aborted) return false;
    giving.value = { ...giving.value!, error: saying(error), busy: false };
    return false;
  }
}

export const givePath = (module: Module, path: string) => attempt(module, () => give(module, { file: path }));

export const giveUpload = (module: Module, file: File) =>
  attempt(module, async (abort) => {
    const id = uploadId(file.name, file.size, file.lastModified, moduleKey(module));
    await sendFile(
      id,
      file,
      (sent, size) => {
        if (!abort.aborted) giving.value = { module: moduleKey(module), sent, size, error: '', busy: true };
      },
      abort,
    );
    try {
      await give(module, { upload: id });
    } catch (error) {
      // The server refused the file, which is of another build: delete the upload.
      if (error instanceof ApiError && error.status === 400) await api.dropUpload(id).catch(() => undefined);
      throw error;
    }
  });

export function stopGiving(): void {
  running?.abort();
  giving.value = null;
}
