// Converts the configuration to the fields of a form and back. Pure.
import type { Config, ConfigPatch } from '../api/types';

export interface ConfigDraft {
  binaries: string; // one per line
  maps: string;
  folder: string;
  sysroot: string;
  inline: boolean;
}

export const lines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

export const draftOf = (config: Config): ConfigDraft => ({
  binaries: config.binaries.join('\n'),
  maps: config.path_map.join('\n'),
  folder: config.source_dir,
  sysroot: config.sysroot,
  inline: config.inline,
});

// Returns only the changed fields.
export function difference(old: Config, draft: ConfigDraft): ConfigPatch {
  const patch: ConfigPatch = {};
  if (lines(draft.binaries).join('\n') !== old.binaries.join('\n')) patch.binaries = lines(draft.binaries);
  if (lines(draft.maps).join('\n') !== old.path_map.join('\n')) patch.path_map = lines(draft.maps);
  if (draft.folder.trim() !== old.source_dir) patch.source_dir = draft.folder.trim();
  if (draft.sysroot.trim() !== old.sysroot) patch.sysroot = draft.sysroot.trim();
  if (draft.inline !== old.inline) patch.inline = draft.inline;
  return patch;
}
