// Texts about the symbols of a module.
import type { FoundBy, Module, ModuleRow, ModuleState } from '../api/types';

export const stateText: Record<ModuleState, string> = {
  debug_info: 'debug info',
  go_table: 'Go’s table',
  symbols: 'symbols only',
  linker_map: 'linker map',
  kept: 'kept in the session',
  stripped: 'stripped',
  mismatch: 'mismatch',
  not_found: 'not found',
  recorded: 'recorded',
  unnamed: 'no names',
  pending: 'being read',
  fetching: 'being fetched',
};

export const stateMeaning: Record<ModuleState, string> = {
  debug_info: 'Functions, files, lines and inlined functions have names.',
  go_table:
    'Functions, files, lines and inlined functions have names, from the table that Go’s linker writes into every program.',
  symbols: 'Functions have names; there are no lines and no inlined functions.',
  linker_map: 'Functions have names, from a linker map; there are no lines and no inlined functions.',
  kept: 'This machine has no better source: the names are those that the session keeps, as they were found where it was recorded or opened before.',
  stripped: 'The file has names of exported functions at most.',
  mismatch: 'There is a file, but it is of another build than the one that runs on the target.',
  not_found: 'No file of it is on the server.',
  recorded: 'Code generated at run time; its names came with the recording.',
  unnamed: 'Code generated at run time; nothing on the target names it.',
  pending: 'Its file is being looked for.',
  fetching: 'Its debug info is being requested from a debuginfod server.',
};

export type Tone = 'good' | 'fair' | 'bad' | 'none';
export const stateTone: Record<ModuleState, Tone> = {
  debug_info: 'good',
  recorded: 'good',
  go_table: 'good',
  symbols: 'fair',
  linker_map: 'fair',
  kept: 'good',
  stripped: 'bad',
  mismatch: 'bad',
  not_found: 'bad',
  unnamed: 'bad',
  pending: 'none',
  fetching: 'none',
};

const foundTexts: Record<FoundBy, string> = {
  '': '',
  uploaded: 'uploaded for it',
  given: 'given to the server',
  path_map: 'by a path map',
  sysroot: 'in the sysroot',
  target_path: 'at its path on the target',
  agent: 'sent by the agent',
  debug_tree: 'by build-id, among the debug files',
  debug_link: 'by the name in the file',
  debug_name: 'by its name, among the debug files',
  kernel_place: 'where kernels are kept',
  this_machine: 'this machine’s own',
  debuginfod: 'from a debuginfod server',
};
export const foundText = (found: FoundBy): string => foundTexts[found];

// Whether the user can provide a file with better symbols for the module.
export const takesFile = (module: Module): boolean =>
  module.kind === 'file' || (module.kind === 'kernel' && module.build_id !== '');

// For the samples in view: the share of self weight of each state, worst first.
export function byState(rows: readonly ModuleRow[]): { state: ModuleState; count: number; share: number }[] {
  const order: readonly ModuleState[] = [
    'mismatch',
    'not_found',
    'unnamed',
    'stripped',
    'linker_map',
    'symbols',
    'fetching',
    'pending',
    'recorded',
    'kept',
    'go_table',
    'debug_info',
  ];
  return order.flatMap((state) => {
    const of = rows.filter((row) => row.module.state === state);
    return of.length === 0
      ? []
      : [{ state, count: of.length, share: of.reduce((sum, row) => sum + row.self_percent, 0) / 100 }];
  });
}

// Names an upload after its file, so that an interrupted upload continues, even after a reload.
export function uploadId(name: string, size: number, modifiedMs: number, purpose: string): string {
  let high = 0x811c9dc5;
  let low = 0x01000193;
  for (const character of `${name}\n${size}\n${modifiedMs}\n${purpose}`) {
    const code = character.codePointAt(0)!;
    high = Math.imul(high ^ code, 0x01000193) >>> 0;
    low = Math.imul(low ^ (code + high), 0x85ebca6b) >>> 0;
  }
  return `page-${high.toString(16).padStart(8, '0')}${low.toString(16).padStart(8, '0')}`;
}
