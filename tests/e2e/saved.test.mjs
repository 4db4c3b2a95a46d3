// The page of a real recording, saved as one file: it opens without a network, shows the same as the server, computes
// other shapes and callers itself, and says what it lacks. Also tests printing.
import assert from 'node:assert/strict';
import { readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { frames, launch, openPage, settled, shot, shows } from './browser.mjs';
import { Programs, built, waitFor } from './programs.mjs';

// An attacker may name a program like this.
const NAME = '<img src=x onerror=alert(1)>&quot;';

const programs = new Programs();
let browser;
let server;
let session;

const api = async (path) => (await fetch(new URL(path, server.url))).json();

before(async () => {
  browser = await launch();
  server = await programs.server();
  const link = join(programs.folder, NAME);
  symlinkSync(built('demo-workload'), link);
  const agent = programs.start(
    'flamewire-agent',
    '--server',
    '127.0.0.1',
    '--port',
    server.agentPort,
    '--frequency',
    999,
    '--',
    link,
    0,
  );
  await waitFor(async () => ((await api('/api/sessions')).sessions[0]?.samples ?? 0) > 1000, '1,000 samples', 90);
  agent.child.kill('SIGTERM');
  session = await waitFor(
    async () => (await api('/api/sessions')).sessions.find((one) => one.state === 'ended'),
    'the end',
    60,
  );
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

// Opens a page of the server, saves it, and returns the path of the file.
async function saved(hash, name) {
  const { page, context, problems } = await openPage(browser, `${server.url}${hash}`, {});
  await page.locator('#export-menu').waitFor();
  if (hash.startsWith('#flame')) await settled(page);
  await page.click('#export-menu');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Page' }).click();
  const file = join(programs.folder, name);
  await (await download).saveAs(file);
  const drawn = hash.startsWith('#flame') ? await frames(page) : [];
  assert.deepEqual(problems, []);
  await context.close();
  return { file, drawn };
}

// Opens a file with the network disabled. Any request for more than the file is a problem.
async function openFile(file, { theme = 'dark', hash = '' } = {}) {
  const context = await browser.newContext({
    colorScheme: theme,
    viewport: { width: 1440, height: 900 },
    deviceScaleFactor: 1,
    offline: true,
  });
  const page = await context.newPage();
  const problems = [];
  const address = pathToFileURL(file).href;
  page.on('pageerror', (error) => problems.push(`error in the page: ${error.stack ?? error}`));
  page.on('console', (message) => message.type() === 'error' && problems.push(`console: ${message.text()}`));
  page.on('dialog', (dialog) => problems.push(`dialog ${dialog.message()}`) && dialog.dismiss());
  page.on(
    'request',
    (request) =>
      !/^(blob|data):/.test(request.url()) &&
      request.url().split('#')[0] !== address &&
      problems.push(`request to ${request.url()}`),
  );
  await page.goto(address + hash);
  return { page, context, problems };
}

const look = ({ name, kind, module, depth, x, width, self, total }) => ({
  name,
  kind,
  module,
  depth,
  x: Math.round(x),
  width: Math.round(width),
  self,
  total,
});

test('the file shows what the server shows, and works without any network', async () => {
  const { file, drawn } = await saved(`#flame?session=${session.id}&search=stage_`, 'page.html');
  assert.ok(statSync(file).size < 2_000_000, `${statSync(file).size} bytes`);
  assert.ok(!readFileSync(file, 'utf8').includes('<img'), 'a name must not become an element of the file');
  const { page, context, problems } = await openFile(file);
  await settled(page);
  assert.deepEqual((await frames(page)).map(look), drawn.map(look));
  await shows(page, '#matched', /% matched/);
  await shows(page, '#connection', /Saved/);
  await shows(page, '#status-samples', new RegExp(session.samples.toLocaleString('en-US')));
  assert.ok((await page.title()).includes('<img src=x'));
  await shot(page, 'saved-dark');

  // A zoom by a click, Back, and the bottom-up order give the same frames as the server.
  const wide = (await frames(page)).find((frame) => frame.name.includes('stage_'));
  const box = await page.locator('.flame-canvas').boundingBox();
  await page.mouse.click(box.x + wide.x + 20, box.y + wide.y + 10);
  await page.locator('.crumbs, .breadcrumbs').first().waitFor();
  await page.waitForFunction(() => window.__flamewire.zoomPath().length > 0);
  await page.goBack();
  await page.waitForFunction(() => window.__flamewire.zoomPath().length === 0);
  await page.getByRole('button', { name: 'Bottom-up' }).click();
  await page.waitForFunction(() => window.__flamewire.state().view.inverted && window.__flamewire.settled());
  const graph = await api(`/api/flamegraph?session=${session.id}&order=bottom-up&min_share=0`);
  const innermost = Object.fromEntries(
    graph.nodes.parent
      .map((parent, node) => [node, parent])
      .filter(([node, parent]) => node > 0 && parent === 0)
      .map(([node]) => [`${graph.names[graph.nodes.name[node]]} ${graph.nodes.kind[node]}`, graph.nodes.total[node]]),
  );
  const kinds = ['user', 'kernel', 'jit', 'inlined', 'unknown'];
  await waitFor(async () => {
    const shown = (await frames(page)).filter((frame) => frame.depth === 1);
    return (
      shown.length > 2 &&
      shown.every((frame) => innermost[`${frame.name} ${kinds.indexOf(frame.kind)}`] === frame.total)
    );
  }, 'the innermost frames of the server');
  assert.deepEqual(problems, []);
  await context.close();
});

// Imports a file as a person does, and waits for the view of its session.
async function imported(name, content) {
  const { page, context, problems } = await openPage(browser, `${server.url}#sessions`, {});
  await page
    .locator('input[type=file]')
    .first()
    .setInputFiles({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(content) });
  await page.waitForURL(/session=/, { timeout: 120_000 });
  await settled(page);
  return { page, context, problems, id: new URLSearchParams(page.url().split('?')[1]).get('session') };
}

test('warnings about the profile are on the page and in the saved file', async () => {
  const { page, context, problems, id } = await imported('cut.folded', 'main;work 80\n[incomplete];work 20\n');
  const warned = async (where) => {
    await where.getByTitle('Show all notices').click();
    await where.getByText(/^20\.00% has incomplete call chains/).waitFor();
  };
  await warned(page);
  assert.deepEqual(problems, []);
  await context.close();
  const { file } = await saved(`#flame?session=${id}`, 'misleading.html');
  const opened = await openFile(file);
  await settled(opened.page);
  await warned(opened.page);
  await shot(opened.page, 'saved-warning');
  assert.deepEqual(opened.problems, []);
  await opened.context.close();
});

test('the first notice of a damaged file is about the missing part', async () => {
  const content = readFileSync(join(programs.folder, 'data', 'sessions', session.id, 'stream.flw'));
  const whole = await imported('whole.flw', content);
  await shows(whole.page, '#status-lost', /^Lost 0/);
  assert.equal(await whole.page.getByText(/session file/).count(), 0);
  await whole.context.close();
  const half = content.length >> 1;
  const { page, context, problems, id } = await imported('half.flw', content.subarray(0, half));
  await shows(page, '.notice-text', /^The session file ends in the middle of a frame: .* Samples are missing after \d/);
  await shows(page, '#status-lost', /^Lost unknown *$/);
  assert.equal((await api(`/api/sessions/${id}`)).state, 'ended');
  await page.click('#status-lost');
  await shows(page, '.pop-body', /The session file is damaged/);
  await shot(page, 'damaged');
  await page.evaluate(() => (location.hash = '#sessions'));
  await shows(page, `tr[data-session="${id}"] .is-lossy`, 'unknown');
  assert.deepEqual(problems, []);
  await context.close();
});

test('functions, callers, threads and modules equal those of the server', async () => {
  const { file } = await saved(`#functions?session=${session.id}`, 'functions.html');
  const { page, context, problems } = await openFile(file);
  await page.locator('.function-row:not(.row-head)').first().waitFor();
  const answers = await page.evaluate(async () => {
    const packed = document.getElementById('flamewire-answers').textContent.trim();
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    return JSON.parse(
      await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).text(),
    );
  });
  assert.equal(answers.session.id, session.id);
  const { functions } = await api(`/api/functions?session=${session.id}`);
  const text = (row) => `${row.name} ${row.module} ${row.self_samples} ${row.total_samples}`;
  const rows = await page.evaluate(() => window.__flamewire.functions());
  assert.deepEqual(rows.map(text).sort(), functions.map(text).sort());

  // Callers of the heaviest functions: totals and direct neighbors.
  const beside = (list) => list.map((row) => `${row.name} ${row.module} ${row.samples}`).sort();
  for (const { name, module } of functions.slice(0, 6)) {
    await page.evaluate(
      ([of, within]) =>
        (location.hash = `#callers?function=${encodeURIComponent(of)}&in=${encodeURIComponent(within)}`),
      [name, module],
    );
    const expected = await api(
      `/api/callers?session=${session.id}&function=${encodeURIComponent(name)}&module=${encodeURIComponent(module)}&min_share=0`,
    );
    const answer = await waitFor(
      () =>
        page.evaluate((of) => {
          const shown = window.__flamewire.callers();
          return shown?.name === of ? shown : null;
        }, name),
      `callers of ${name}`,
    );
    for (const side of ['direct_callers', 'direct_callees'])
      assert.deepEqual(beside(answer[side]), beside(expected[side]), `${side} of ${name}`);
    for (const figure of ['function_self', 'function_total', 'total'])
      assert.deepEqual(answer[figure], expected[figure], `${figure} of ${name}`);
    for (const half of ['callers', 'callees']) {
      const ordered = (totals) => totals.slice().sort((a, b) => b - a);
      assert.deepEqual(ordered(answer[half]), ordered(expected[half].nodes.total), `${half} of ${name}`);
    }
  }
  await page.click('#tab-threads');
  await page.locator('.thread-row:not(.row-head)').first().waitFor();
  await page.click('#tab-modules');
  await shows(page, '.module-row', /demo-workload|<img/);
  assert.equal(await page.locator('.module-give').count(), 0);

  // A view that the file lacks says so and leads back.
  await page.click('#tab-source');
  await shows(page, '.message h3', 'Not in this file');
  await page.getByRole('button', { name: 'Back to what was saved' }).click();
  await page.locator('.function-row:not(.row-head)').first().waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test('a file saved for a range of time contains that range, and reports that it lacks others', async () => {
  const middle = Math.round(session.duration_ms / 2 / 10) * 10;
  const { file, drawn } = await saved(`#flame?session=${session.id}&start=0&end=${middle}`, 'range.html');
  const expected = await api(`/api/flamegraph?session=${session.id}&start=0&end=${middle}`);
  const { page, context, problems } = await openFile(file, { theme: 'light' });
  await settled(page);
  assert.deepEqual((await frames(page)).map(look), drawn.map(look));
  assert.equal(await page.evaluate(() => window.__flamewire.state().total), expected.total.weight);
  await shot(page, 'saved-light');
  await page.evaluate((end) => (location.hash = `#functions?start=0&end=${end}`), middle + 50);
  await shows(page, '.message', /another stretch of time needs the server/);
  await page.reload();
  await shows(page, '.message', /another stretch of time needs the server/);
  assert.deepEqual(problems, []);
  await context.close();
});

// The text of a PDF is compressed, so the text is read from the page while it is laid out for printing.
test('a printed view is complete and light, and has a heading', async () => {
  const given = await browser.newContext({
    colorScheme: 'dark',
    viewport: { width: 1440, height: 900 },
    deviceScaleFactor: 1,
  });
  // This listener runs before the page's own one, so it reads the layout that was printed.
  await given.addInitScript(() =>
    addEventListener(
      'afterprint',
      () =>
        (window.printed = {
          text: document.body.innerText,
          rows: document.querySelectorAll('.function-row:not(.row-head)').length,
          lines: document.querySelectorAll('.printed-source tbody tr').length,
        }),
    ),
  );
  const { page, context, problems } = await openPage(browser, `${server.url}#flame?session=${session.id}&start=0`, {
    context: given,
  });
  await settled(page);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.waitForFunction(() => document.documentElement.classList.contains('is-printing'));
  await shows(
    page,
    '.print-head',
    new RegExp(`flame graph.*Event: .*Time: .*Samples: ${session.samples.toLocaleString('en-US')}`),
  );
  const state = await page.evaluate(() => {
    const shown = (selector) =>
      [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility()).length;
    const canvas = document.querySelector('.flame-canvas').getBoundingClientRect();
    return {
      controls: shown('.toolbar, .tabs, .header, .strip, .status, .main button:not(.crumb):not(.subbar button)'),
      width: canvas.width,
      height: canvas.height,
      depth: Math.max(...window.__flamewire.frames().map((frame) => frame.depth)),
      theme: document.documentElement.dataset.theme,
    };
  });
  assert.equal(state.controls, 0);
  assert.equal(state.theme, 'light');
  assert.ok(state.width > 1000 && state.height >= (state.depth + 1) * 20, JSON.stringify(state));
  await shot(page, 'print-flame', { fullPage: true });
  const { functions } = await api(`/api/functions?session=${session.id}`);
  await page.evaluate((id) => (location.hash = `#functions?session=${id}`), session.id);
  await page.waitForFunction(
    (count) => document.querySelectorAll('.function-row:not(.row-head)').length === count,
    Math.min(1000, functions.length),
  );
  await shot(page, 'print-functions', { fullPage: true });
  await page.emulateMedia({ media: 'screen', colorScheme: 'dark' });
  await page.waitForFunction(() => !document.documentElement.classList.contains('is-printing'));
  await page.locator('.toolbar').first().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  assert.ok((await page.pdf({ preferCSSPageSize: true })).length > 10_000);
  const printed = await page.waitForFunction(() => window.printed);
  const { text, rows } = await printed.jsonValue();
  assert.match(text, /functions[\s\S]*Event: /);
  assert.equal(rows, Math.min(1000, functions.length));
  // All lines of a source file are printed with their weights, not only those on the screen.
  const [{ file }] = (await api(`/api/source-files?session=${session.id}`)).files;
  await page.evaluate(
    (hash) => ((window.printed = null), (location.hash = hash)),
    `#source?session=${session.id}&file=${encodeURIComponent(file)}`,
  );
  await page.locator('.source-line').first().waitFor();
  await page.pdf();
  const source = await (await page.waitForFunction(() => window.printed)).jsonValue();
  const written = (await api(`/api/source?session=${session.id}&file=${encodeURIComponent(file)}`)).lines;
  assert.equal(source.lines, written.length);
  assert.match(source.text, /source[\s\S]*\d\.\d %/);
  assert.deepEqual(problems, []);
  await context.close();
});
