// The types that the page is compiled against are those of docs/openapi.yaml. `npm run types` makes them anew.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';

const contract = process.env['FLAMEWIRE_OPENAPI'] ?? '../docs/openapi.yaml';

test('types.gen.ts agrees with docs/openapi.yaml', async () => {
  const fresh = COMMENT_HEADER + astToString(await openapiTS(pathToFileURL(contract), { silent: true }));
  const checked = readFileSync('src/api/types.gen.ts', 'utf8');
  assert.ok(fresh.trim() === checked.trim(), 'docs/openapi.yaml changed: run `npm run types` in web/ and let tsc find what no longer fits');
});
