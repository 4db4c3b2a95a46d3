import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disassembly } from '../src/api/types';
import { arrowsOf, MOST_LANES, piecesOf } from '../src/code/arrows';
import {
  chainOf,
  hottestIndex,
  indexAt,
  instructionsAt,
  linesAt,
  placeIn,
  sourceOf,
  splitText,
} from '../src/code/listing';
import { grammarOf } from '../src/code/languages';
import { formatHash, parseHash } from '../src/model/view_state';

const zeros = [0, 0, 0, 0];
const code: Disassembly = {
  session: 's',
  event: 'cycles',
  unit: 'cycles',
  data_version: 1,
  total: { samples: 10, weight: 100 },
  copies: [
    {
      name: 'f',
      module: 'app',
      build_id: '',
      address: 16,
      size: 13,
      inlined: false,
      self: 40,
      self_samples: 4,
      total: 60,
    },
  ],
  chosen: 0,
  file: '/app',
  machine: 62,
  problem: '',
  remedy: '',
  note: '',
  next: 0,
  first: 0,
  instructions: {
    address: [16, 18, 23, 28],
    size: [2, 5, 5, 1],
    text: ['jne 0x1c', 'call 0x40', 'mov %rax,%rbx', 'ret'],
    flow: [2, 3, 0, 4],
    known: [1, 1, 1, 1],
    target: [3, -1, -1, -1],
    target_address: [28, 64, 0, 0],
    target_name: [0, 5, 0, 0],
    reference: zeros,
    place: [0, 1, 1, 2],
    self: [0, 5, 35, 0],
    self_samples: [0, 1, 3, 0],
    total: [0, 25, 35, 0],
    total_samples: [0, 3, 3, 0],
  },
  places: [[1, 2, 10], [3, 4, 7, 1, 2, 11], []],
  strings: ['', 'f', 'f.cc', 'g', 'g.h', 'callee'],
};

test('instructions and lines lead to each other', () => {
  assert.deepEqual(chainOf(code, 1), [
    { name: 'g', file: 'g.h', line: 7 },
    { name: 'f', file: 'f.cc', line: 11 },
  ]);
  assert.deepEqual(chainOf(code, 3), []);
  // The place in the shown file, or else the innermost one.
  assert.equal(placeIn(code, 1, 'f.cc')?.line, 11);
  assert.equal(placeIn(code, 1, 'other.cc')?.file, 'g.h');
  assert.equal(placeIn(code, 3, 'f.cc'), null);
  assert.deepEqual([...instructionsAt(code, 'f.cc', 11)], [1, 2]);
  assert.deepEqual([...instructionsAt(code, 'g.h', 7)], [1, 2]);
  assert.deepEqual([...instructionsAt(code, 'g.h', 11)], []);
  assert.deepEqual([...linesAt(code, 2, 'f.cc')], [11]);
  assert.equal(indexAt(code, 18), 1);
  assert.equal(indexAt(code, 22), 1);
  assert.equal(indexAt(code, 29), -1);
  assert.equal(indexAt(code, 3), -1);
  assert.equal(hottestIndex(code), 2);
  assert.deepEqual(sourceOf(code), { name: 'f', file: 'f.cc', line: 11 });
});

test('jumps take the nearest free lane, short ones first', () => {
  // 0 -> 9 spans 2 -> 4 and 7 -> 5 (a loop).
  const arrows = arrowsOf([9, -1, 4, -1, -1, -1, -1, 5, -1, -1], [2, 0, 1, 0, 0, 0, 0, 2, 0, 0]);
  assert.deepEqual(arrows, [
    { from: 2, to: 4, lane: 0, conditional: false },
    { from: 7, to: 5, lane: 0, conditional: true },
    { from: 0, to: 9, lane: 1, conditional: true },
  ]);
  const pieces = piecesOf(arrows, 10);
  assert.deepEqual(pieces[2], [
    { arrow: 0, lane: 0, up: false, down: true, end: 'tail' },
    { arrow: 2, lane: 1, up: true, down: true, end: 'none' },
  ]);
  assert.equal(pieces[5]!.find((piece) => piece.arrow === 1)?.end, 'head');
  assert.equal(pieces[9]![0]!.down, false);
  // If many jumps overlap, the number of lanes is limited.
  const many = arrowsOf(
    Array.from({ length: 100 }, (_, i) => 99 - i),
    Array(100).fill(1),
  );
  assert.ok(many.length <= 2 * MOST_LANES && many.every((arrow) => arrow.lane < MOST_LANES));
});

test('mnemonics are separate from operands and keep their prefixes', () => {
  assert.deepEqual(splitText('mov %rax,%rbx'), ['mov', '%rax,%rbx']);
  assert.deepEqual(splitText('lock xadd %eax,(%rdx)'), ['lock xadd', '%eax,(%rdx)']);
  assert.deepEqual(splitText('ret'), ['ret', '']);
  assert.deepEqual(splitText('notrack jmp *%rax'), ['notrack jmp', '*%rax']);
});

test('the grammar of a file follows from its extension', () => {
  assert.equal(grammarOf('/a/b.cc'), 'cpp');
  assert.equal(grammarOf('/usr/include/c++/12/vector'), 'cpp');
  assert.equal(grammarOf('/a/Makefile'), null);
  assert.equal(grammarOf('lib.rs'), 'rust');
  assert.equal(grammarOf('a.S'), null);
  assert.equal(grammarOf('x.TSX'), 'javascript');
});

test('the URL contains the shown function and the marked lines', () => {
  const hash = '#source?file=a.cc&line=7&split=off&code=f%3Cint%3E&codein=app&at=0x40af';
  const view = parseHash(hash);
  assert.equal(view.address, 0x40af);
  assert.equal(view.codeOf, 'f<int>');
  assert.equal(view.codeModule, 'app');
  assert.equal(view.split, false);
  assert.equal(formatHash(view), hash);
  assert.equal(parseHash('#source?at=xyz').address, null);
  assert.equal(parseHash('#source').split, true);
  for (const group of ['process', 'cpu'] as const)
    assert.equal(parseHash(formatHash({ ...parseHash('#flame'), group })).group, group);
  assert.equal(parseHash('#flame?each=planet').group, 'none');
});
