// What a person has changed of where symbols and sources are looked for, until it is applied.
import { signal } from '@preact/signals';
import type { Config, ConfigPatch } from '../api/types';
import { difference, draftOf, lines, type ConfigDraft } from '../text/config';
import { changeConfig, readConfig } from './actions';
import { toast } from './ui';

const saved = signal<Config | null>(null);
export const configDraft = signal<ConfigDraft | null>(null);

export async function loadConfig(): Promise<boolean> {
  configDraft.value = null;
  const fresh = await readConfig();
  saved.value = fresh;
  configDraft.value = fresh && draftOf(fresh);
  return fresh !== null;
}

export function editConfig(patch: Partial<ConfigDraft>): void {
  if (configDraft.value) configDraft.value = { ...configDraft.value, ...patch };
}

export function addBinary(path: string): void {
  const known = lines(configDraft.value?.binaries ?? '');
  if (!known.includes(path)) editConfig({ binaries: [...known, path].join('\n') });
}

// True when the server looks there from now on.
export async function applyConfig(): Promise<boolean> {
  if (!saved.value || !configDraft.value) return false;
  const patch: ConfigPatch = difference(saved.value, configDraft.value);
  if (Object.keys(patch).length === 0) return true;
  const fresh = await changeConfig(patch);
  if (!fresh) return false;
  saved.value = fresh;
  configDraft.value = draftOf(fresh);
  if ((fresh.notes ?? []).length === 0) toast('Symbols are being read anew');
  return true;
}
