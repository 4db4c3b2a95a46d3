// Edits of where symbols and sources are searched, until they are applied.
import { signal } from '@preact/signals';
import { api } from '../api/client';
import type { Config, ConfigPatch } from '../api/types';
import { difference, draftOf, lines, type ConfigDraft } from '../text/config';
import { changeConfig } from './actions';
import { toast } from './ui';

const saved = signal<Config | null>(null);
export const configDraft = signal<ConfigDraft | null>(null);
// Why the configuration cannot be read; empty while it loads.
export const configProblem = signal('');

let reads = 0;
let change: Promise<Config | null> = Promise.resolve(null);

export async function loadConfig(): Promise<void> {
  const read = ++reads;
  saved.value = null;
  configDraft.value = null;
  configProblem.value = '';
  await change;
  // A newer read may be answered first, and its fields edited.
  const isNewest = () => read === reads;
  try {
    const answer = await api.config();
    if (!isNewest()) return;
    saved.value = answer;
    configDraft.value = draftOf(answer);
  } catch (error) {
    if (isNewest()) configProblem.value = error instanceof Error ? error.message : String(error);
  }
}

export function editConfig(patch: Partial<ConfigDraft>): void {
  if (configDraft.value) configDraft.value = { ...configDraft.value, ...patch };
}

export function addBinary(path: string): void {
  const known = lines(configDraft.value?.binaries ?? '');
  if (!known.includes(path)) editConfig({ binaries: [...known, path].join('\n') });
}

// Returns true if nothing is left to apply. Before the configuration is read there are no fields, so nothing was edited.
export async function applyConfig(): Promise<boolean> {
  const draft = configDraft.value;
  if (!saved.value || !draft) return true;
  const patch: ConfigPatch = difference(saved.value, draft);
  if (Object.keys(patch).length === 0) return true;
  const read = reads;
  change = changeConfig(patch);
  const fresh = await change;
  if (!fresh) return false;
  if (read === reads) {
    saved.value = fresh;
    if (configDraft.value === draft) configDraft.value = draftOf(fresh);
  }
  if ((fresh.notes ?? []).length === 0) toast('Symbols are being read again');
  return true;
}
