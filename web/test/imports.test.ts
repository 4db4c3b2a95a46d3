// Imports of the page have no cycles, not even for types.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import ts from 'typescript';

const root = resolve('src');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => join(root, name));

function importsOf(file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(file, 'utf8'), true, true);
  return importedFiles
    .filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => resolve(dirname(file), fileName))
    .flatMap((path) => ['.ts', '.tsx'].map((end) => path + end).filter((name) => existsSync(name)));
}

test('imports have no cycles', () => {
  const graph = new Map(files.map((file) => [file, importsOf(file)]));
  assert.ok(graph.get(join(root, 'main.tsx'))!.length > 10);
  // Remove files that import none of the remaining ones: they are not in a cycle.
  for (let before = -1; before !== graph.size; ) {
    before = graph.size;
    for (const [file, imported] of graph) if (!imported.some((one) => graph.has(one))) graph.delete(file);
  }
  assert.deepEqual(
    [...graph.keys()].map((file) => relative(root, file)),
    [],
  );
});
