// Labels and paths of the picker of files on the server. Pure.
import type { Browse, BrowseEntry } from '../api/types';
import { bytes } from './format';

export type Wanted = 'file' | 'folder';

export function join(folder: string, name: string): string {
  if (!folder || name.startsWith('/')) return name;
  return folder.endsWith('/') ? `${folder}${name}` : `${folder}/${name}`;
}

// Details that help to choose a file: for programs, the architecture, and whether they contain symbols and debug info.
export function entryNote(entry: BrowseEntry): string {
  if (entry.outside) return 'a link out of what may be shown';
  if (entry.kind !== 'file') return entry.link ? 'link' : '';
  const parts = [bytes(entry.size_bytes)];
  if (entry.elf) {
    parts.push(entry.elf.arch);
    parts.push(entry.elf.debug_info ? 'debug info' : entry.elf.symbols ? 'symbols, no debug info' : 'stripped');
    if (entry.elf.build_id) parts.push(entry.elf.build_id.slice(0, 12));
  }
  return parts.join(' · ');
}

export const canOpen = (entry: BrowseEntry): boolean => entry.kind === 'folder' && !entry.outside;
export const canChoose = (entry: BrowseEntry, wanted: Wanted): boolean => !entry.outside && entry.kind === wanted;

// The parts of a path below its root, each with its own path.
export function crumbs(listing: Pick<Browse, 'path' | 'roots'>): { name: string; path: string }[] {
  const inside = (root: string) => listing.path === root || root === '/' || listing.path.startsWith(`${root}/`);
  const root = [...listing.roots].filter(inside).sort((a, b) => a.length - b.length)[0];
  if (!listing.path || root === undefined) return [];
  const out = [{ name: root, path: root }];
  let at = root;
  for (const part of listing.path.slice(root.length).split('/').filter(Boolean)) {
    at = join(at, part);
    out.push({ name: part, path: at });
  }
  return out;
}
