// The page is compiled against the types of docs/openapi.yaml. `npm run types` regenerates them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const contract = process.env['FLAMEWIRE_OPENAPI'] ?? '../docs/openapi.yaml';

test('types.gen.ts agrees with docs/openapi.yaml', async () => {
  const fresh = astToString(await openapiTS(pathToFileURL(contract), { silent: true }));
  const checked = readFileSync('src/api/types.gen.ts', 'utf8');
  // Descriptions become comments. A change of a description does not change the contract.
  const bare = (text: string) =>
    text
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/\s+/g, ' ')
      .trim();
  assert.ok(
    bare(fresh) === bare(checked),
    'docs/openapi.yaml changed: run `npm run types` in web/ and let tsc find what no longer fits',
  );
});
