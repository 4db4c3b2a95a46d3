// Bundles the UI into dist/: index.html, app.js, app.css, favicon.svg. `--out DIR` elsewhere, `--watch` rebuilds on change.
import { build, context } from 'esbuild';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const outFlag = process.argv.indexOf('--out');
const out = outFlag > 0 ? process.argv[outFlag + 1] : join(here, 'dist');
const watch = process.argv.includes('--watch');

const options = {
  entryPoints: { app: join(here, 'src/main.tsx') },
  outdir: out,
  bundle: true,
  format: 'esm',
  target: ['es2022', 'chrome105', 'firefox110', 'safari16'],
  minify: !watch,
  sourcemap: watch ? 'inline' : false,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
};

await mkdir(out, { recursive: true });
for (const file of ['index.html', 'favicon.svg']) await copyFile(join(here, file), join(out, file));
if (watch) await (await context(options)).watch();
else await build(options);
