// The texts and paths of the file picker, and the request for a change in the settings form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrowseEntry, Config } from '../src/api/types';
import { canChoose, canOpen, crumbs, entryNote, join } from '../src/text/browse';
import { difference, draftOf, lines } from '../src/text/config';

const entry = (patch: Partial<BrowseEntry>): BrowseEntry => ({
  name: 'x',
  kind: 'file',
  size_bytes: 2048,
  link: false,
  outside: false,
  ...patch,
});

test('paths are joined, and roots have full names', () => {
  assert.equal(join('/a', 'b'), '/a/b');
  assert.equal(join('/', 'b'), '/b');
  assert.equal(join('', '/home/me'), '/home/me');
});

test('the path to a folder starts at the outermost root', () => {
  assert.deepEqual(crumbs({ path: '/home/me/src/a', roots: ['/home/me/src', '/home/me', '/sdk'] }), [
    { name: '/home/me', path: '/home/me' },
    { name: 'src', path: '/home/me/src' },
    { name: 'a', path: '/home/me/src/a' },
  ]);
  assert.deepEqual(crumbs({ path: '', roots: ['/a'] }), []);
  assert.deepEqual(crumbs({ path: '/etc', roots: ['/'] }), [
    { name: '/', path: '/' },
    { name: 'etc', path: '/etc' },
  ]);
});

test('an entry shows what helps to choose it', () => {
  const elf = { arch: 'aarch64', build_id: '0123456789abcdef', symbols: true, debug_info: false };
  assert.match(entryNote(entry({ elf })), /aarch64 · symbols, no debug info · 0123456789ab$/);
  assert.match(entryNote(entry({ elf: { ...elf, symbols: false } })), /stripped/);
  assert.match(entryNote(entry({ elf: { ...elf, debug_info: true } })), / debug info/);
  assert.equal(entryNote(entry({ kind: 'folder' })), '');
  assert.match(entryNote(entry({ outside: true, kind: 'other' })), /out of what may be shown/);
  assert.equal(canOpen(entry({ kind: 'folder' })), true);
  assert.equal(canOpen(entry({ kind: 'folder', outside: true })), false);
  assert.equal(canChoose(entry({}), 'file'), true);
  assert.equal(canChoose(entry({}), 'folder'), false);
});

test('only changed settings are sent', () => {
  const config: Config = {
    binaries: ['/a'],
    maps: [],
    source_dir: '.',
    path_map: [],
    sysroot: '',
    toolchain_prefix: '',
    inline: true,
  };
  const draft = draftOf(config);
  assert.deepEqual(difference(config, draft), {});
  assert.deepEqual(difference(config, { ...draft, binaries: ' /a \n\n/b' }), { binaries: ['/a', '/b'] });
  assert.deepEqual(difference(config, { ...draft, sysroot: ' /sdk ', inline: false }), {
    sysroot: '/sdk',
    inline: false,
  });
  assert.deepEqual(lines(' a \n\n b'), ['a', 'b']);
});
