// The functions table, with rows counted by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FunctionRow } from '../src/api/types';
import { compilePattern } from '../src/model/pattern';
import { FunctionTable, functionsCsv, grouped, modulesOf, orderByNumber } from '../src/text/functions';
import { TextColumn } from '../src/text/text_column';

const row = (name: string, module: string, self: number, total: number, file = ''): FunctionRow => ({
  name,
  module,
  kind: 'user',
  file,
  line: file ? 7 : 0,
  self,
  total,
  self_samples: self,
  total_samples: total,
  self_percent: self,
  total_percent: total,
});
const rows = [
  row('main', 'prog', 1, 100, 'a.cc'),
  row('sin', 'libm', 40, 40),
  row('work, "hard"', 'prog', 30, 90, 'a.cc'),
  row('cos', 'libm', 29, 29),
];
const names = (list: readonly FunctionRow[]) => list.map((one) => one.name[0]).join('');

test('numbers are sorted as numbers, and equal ones keep their order', () => {
  const order = (keys: number[]) => Array.from(orderByNumber(Float64Array.from(keys)));
  assert.deepEqual(order([3, 1, 2]), [1, 2, 0]);
  assert.deepEqual(order([5, 0, 5, 1e300, 0.25, 5e-324, 2 ** 53, 0]), [1, 7, 5, 4, 0, 2, 6, 3]);
  assert.deepEqual(order([]), []);
  assert.deepEqual(order([7, 7]), [0, 1]);
});

test('rows are sorted and filtered', () => {
  const table = new FunctionTable(rows);
  assert.equal(names(table.select('self', false, null, '')), 'swcm');
  assert.equal(names(table.select('total', true, null, '')), 'cswm');
  assert.equal(names(table.select('name', true, null, '')), 'cmsw');
  assert.equal(names(table.select('name', true, null, 'libm')), 'cs');
  // By name or by module.
  assert.equal(names(table.select('self', false, compilePattern('^(libm|main)$'), '')), 'scm');
  assert.equal(names(table.select('self', false, compilePattern('hard'), 'libm')), '');
});

test('a search for plain text gives the same as one for the expression', () => {
  const texts = ['alpha', '', 'BETA alpha', 'beta', 'al', 'pha', 'İstanbul', 'gamma::alphabet', 'x.y', 'xay', 'last'];
  const column = new TextColumn(texts);
  const found = (text: string) =>
    Array.from(column.matches(compilePattern(text)!)).flatMap((fit, i) => (fit ? [i] : []));
  assert.deepEqual(found('alpha'), [0, 2, 7]);
  assert.deepEqual(found('beta'), [2, 3]);
  assert.deepEqual(found('BETA'), [2]);
  assert.deepEqual(found('a'), [0, 2, 3, 4, 5, 6, 7, 9, 10]);
  assert.deepEqual(found('x.y'), [8, 9]);
  assert.deepEqual(found('last'), [10]);
  assert.deepEqual(found('stanbul'), [6]);
  assert.deepEqual(found('no such'), []);
  assert.deepEqual(found('(al'), []); // not a valid expression: plain text
  assert.deepEqual(found('al\\npha'), []);
  assert.deepEqual(found('al\npha'), []);
  assert.deepEqual(Array.from(new TextColumn([]).matches(compilePattern('a')!)), []);
});

test('groups have the sum of self weights; a closed group has only its head', () => {
  const sorted = new FunctionTable(rows).select('self', false, null, '');
  const text = (closed: string[]) =>
    grouped(sorted, 'module', new Set(closed))
      .map((item) =>
        item.kind === 'group' ? `${item.group.name} ${item.group.count}/${item.group.self}` : item.row.name[0],
      )
      .join(' ');
  assert.equal(text([]), 'libm 2/69 s c prog 2/31 w m');
  assert.equal(text(['libm']), 'libm 2/69 prog 2/31 w m');
  assert.deepEqual(modulesOf(rows), ['libm', 'prog']);
});

test('CSV contains the shown rows, with quotes where necessary', () => {
  assert.equal(
    functionsCsv([rows[2]!], 'ns'),
    'function,module,kind,file,line,self (ns),self %,self samples,total (ns),total %,total samples\r\n' +
      '"work, ""hard""",prog,user,a.cc,7,30,30.0000,30,90,90.0000,90\r\n',
  );
});
