// Bundles the UI into dist/: index.html, app.js, flame.js (its worker), editor.js with its languages, app.css,
// favicon.svg. `--out DIR` selects another folder, `--watch` rebuilds on changes, and `--source DIR` bundles other
// sources with the packages beside this file. licences.txt beside dist/ contains the licenses of the bundled packages.
import { build, context } from 'esbuild';
import { watchFile } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { minify } from 'terser';

const here = dirname(fileURLToPath(import.meta.url));
function option(name, standard) {
  const at = process.argv.indexOf(name);
  return at > 0 ? resolve(process.argv[at + 1]) : standard;
}
const out = option('--out', join(here, 'dist'));
const source = option('--source', here);
const watch = process.argv.includes('--watch');

// The source editor is a separate bundle, which is loaded when the first source is shown. The page itself stays in one
// bundle, because a page that is saved as a file cannot load others.
const editorApart = {
  name: 'editor-apart',
  setup: (at) => at.onResolve({ filter: /code\/editor$/ }, () => ({ path: './editor.js', external: true })),
};

const common = {
  outdir: out,
  bundle: true,
  format: 'esm',
  target: ['es2022', 'chrome105', 'firefox110', 'safari16'],
  minify: !watch,
  sourcemap: watch ? 'inline' : false,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: watch ? 'info' : 'warning',
  nodePaths: [join(here, 'node_modules')],
  metafile: true,
};
// Removes unused parts of the charts from the tables that the package exports, so that esbuild omits them. No chart of
// the page has a legend, a cursor, or an axis of dates or logarithms.
const chartsWeDraw = {
  name: 'charts-we-draw',
  setup: (at) =>
    at.onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8'))
        .replace(
          /\(paths\.(bars|spline)\s+= \w+\);|uPlot\.(assign|fmtNum|range\w+|orient|fmtDate|tzDate|sync|addGap|clipGaps)\s*= \w+;/g,
          '',
        )
        .replace(/^\s*const (\[ time\w+,.*= genTimeStuffs|_time(Axis|Series)\w+\s*= ).*;$/gm, '')
        .replace(/\bisTime (\?|&&)/g, 'false $1')
        .replace(/\b(\w+\.)?distr\s*(==\s*(3|4|100)\b|>= 3\b)/g, 'false')
        .replace(/\bshow(Legend|Cursor)\b(?! +=)/g, 'false'),
    })),
};
const page = { ...common, entryPoints: { app: join(source, 'src/main.tsx') }, plugins: [editorApart, chartsWeDraw] };
// Not a module, because the oldest supported browser has no module workers.
const worker = { ...common, entryPoints: { flame: join(source, 'src/flame/worker.ts') }, format: 'iife' };
// The package creates all dialects of a language when it is loaded, but the page uses one each. Marking the calls as
// pure lets esbuild remove those for other dialects.
const oneDialect = {
  name: 'one-dialect',
  setup: (at) =>
    at.onLoad({ filter: /legacy-modes\/mode\/\w+\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace(
        /(?<!function )\b(clike|words|mkJavaScript|mkPython)\(/g,
        '/* @__PURE__ */ $1(',
      ),
    })),
};
// Each language is a separate file.
const editor = {
  ...common,
  entryPoints: { editor: join(source, 'src/code/editor.ts') },
  plugins: [oneDialect],
  splitting: true,
  chunkNames: 'editor-[name]-[hash]',
};

// The folder of the package that contains a bundled file; null for sources of this tree.
function packageOf(file) {
  const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file);
  return match && match[1];
}

async function licences(metafile) {
  const folders = new Set(Object.keys(metafile.inputs).map(packageOf).filter(Boolean));
  const texts = [];
  for (const folder of [...folders].sort()) {
    const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no file with the text of its license (${license})`);
    texts.push(`${name} ${version}: ${license}\n\n${(await readFile(join(folder, file), 'utf8')).trim()}\n`);
  }
  return texts.join(`\n${'-'.repeat(78)}\n\n`);
}

// Terser's output is 3 % smaller than esbuild's when both are compressed.
const smaller = (part, outputs) =>
  Promise.all(
    Object.keys(outputs)
      .filter((file) => file.endsWith('.js'))
      .map(async (file) => {
        const { code } = await minify(await readFile(resolve(file), 'utf8'), {
          module: part.format === 'esm',
          ecma: 2020,
          compress: { passes: 2 },
          format: { comments: false },
        });
        await writeFile(resolve(file), code);
      }),
  );

// The limit for the compressed size of the whole page, so that it opens fast even over a slow link.
const MOST_BYTES = 250_000;
async function checkSize(outputs) {
  const sizes = await Promise.all(
    Object.keys(outputs).map(async (file) => gzipSync(await readFile(resolve(file)), { level: 9 }).length),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total > MOST_BYTES) throw new Error(`the bundle has ${total} bytes compressed, more than ${MOST_BYTES}`);
}

await mkdir(out, { recursive: true });
for (const file of ['index.html', 'favicon.svg']) {
  const copy = () => copyFile(join(source, file), join(out, file));
  await copy();
  if (watch) watchFile(join(source, file), { interval: 500 }, () => copy().catch(console.error));
}
if (watch) {
  for (const part of [page, worker, editor]) await (await context(part)).watch();
} else {
  const made = await Promise.all(
    [page, worker, editor].map(async (part) => {
      const built = await build(part);
      await smaller(part, built.metafile.outputs);
      return built;
    }),
  );
  const inputs = Object.assign({}, ...made.map(({ metafile }) => metafile.inputs));
  await writeFile(join(dirname(out), 'licences.txt'), await licences({ inputs }));
  await checkSize(Object.assign({}, ...made.map(({ metafile }) => metafile.outputs)));
}
