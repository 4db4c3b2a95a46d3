// The shapes of the flame graph, the actions of its frames, and callers and callees: for a recording while it runs and
// after it has ended. Nothing here depends on the number of samples in a given time.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { contentOf, launch, openPage, settled, shot, shows } from './browser.mjs';
import { Programs, waitFor } from './programs.mjs';

const programs = new Programs();
let browser;
let server;
let agent;
let session = '';

const api = async (path) => (await fetch(new URL(path, server.url))).json();

before(async () => {
  browser = await launch();
  server = await programs.server();
  const workload = programs.start('demo-workload', 0);
  agent = programs.start(
    'flamewire-agent',
    '--server',
    '127.0.0.1',
    '--port',
    server.agentPort,
    '--pid',
    workload.pid,
    '--frequency',
    499,
  );
  await waitFor(async () => ((await api('/api/sessions')).sessions[0]?.samples ?? 0) > 1500, '1,500 samples', 90);
  session = (await api('/api/sessions')).sessions[0].id;
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

// Waits until `holds(frames, argument)` is true for the frames on the canvas.
const drawn = (page, holds, argument) =>
  waitFor(async () => {
    const shown = await page.evaluate(() => window.__flamewire?.settled() && window.__flamewire.frames());
    return shown && holds(shown, argument);
  }, `frames for which ${holds} holds`);
const pointTo = async (page, name) => {
  await settled(page);
  const frame = await page.evaluate(
    (part) =>
      window.__flamewire
        .frames()
        .filter((one) => one.name.includes(part))
        .sort((a, b) => b.width - a.width)[0],
    name,
  );
  assert.ok(frame, `${name} is not on the canvas`);
  const box = await page.locator('.flame-canvas').first().boundingBox();
  return { x: box.x + frame.x + Math.min(frame.width / 2, 30), y: box.y + frame.y + frame.height / 2 };
};
const menuOf = async (page, name, item) => {
  // New data may move the frame before the click arrives. The label of the menu contains the name of its frame.
  await waitFor(async () => {
    const { x, y } = await pointTo(page, name);
    await page.mouse.click(x, y, { button: 'right' });
    await page.locator('#frame-menu').waitFor();
    if ((await page.getAttribute('#frame-menu', 'aria-label')).includes(name)) return true;
    await page.keyboard.press('Escape');
    return false;
  }, `the menu of ${name}`);
  if (item) await page.click(`#frame-menu [data-item=${item}]`);
};
const has = (frames, part) => frames.some((frame) => frame.name.includes(part));
const hasNot = (frames, part) => frames.length > 3 && !frames.some((frame) => frame.name.includes(part));

async function walkThrough(state) {
  const context = await browser.newContext({ colorScheme: 'dark', viewport: { width: 1440, height: 900 } });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(server.url).origin });
  const { page, problems } = await openPage(browser, `${server.url}#flame?session=${session}`, { context });
  const back = async () => {
    await page.goBack();
    await settled(page);
  };
  await drawn(page, has, 'stage_weather');

  // Bottom-up: the innermost frames are below the root. Back undoes it.
  await page.getByRole('button', { name: 'Bottom-up' }).click();
  await drawn(page, (frames) => frames.some((frame) => frame.depth === 1 && frame.name.includes('visit_quadrant')));
  assert.match(page.url(), /order=bottom-up/);
  await shot(page, `flame-bottom-up-dark-${state}`);
  await back();
  await drawn(page, (frames) => frames.every((frame) => frame.depth !== 1 || !frame.name.includes('visit_quadrant')));

  // By line, then by address: the labels of the frames contain it.
  await page.click('#shape-menu');
  await page.getByRole('button', { name: 'Line', exact: true }).click();
  await drawn(page, (frames) => frames.some((frame) => /stage_weather.*:\d+$/.test(frame.label)));
  await page.getByRole('button', { name: 'Address', exact: true }).click();
  await drawn(page, (frames) => frames.some((frame) => /stage_weather.* 0x[0-9a-f]+$/.test(frame.label)));
  await page.getByRole('button', { name: 'Function', exact: true }).click();
  await page.getByRole('button', { name: 'One frame', exact: true }).click();
  assert.match(page.url(), /recursion=collapse/);
  await drawn(page, (frames) => {
    const recursive = frames.filter((frame) => frame.name.includes('visit_quadrant'));
    const on = (a, b) => b.depth === a.depth + 1 && b.x >= a.x - 0.01 && b.x + b.width <= a.x + a.width + 0.01;
    return recursive.length > 0 && !recursive.some((a) => recursive.some((b) => on(a, b)));
  });
  await page.getByRole('button', { name: 'Module', exact: true }).click();
  await page.locator('.legend-module', { hasText: 'demo-workload' }).waitFor();
  await shot(page, `flame-by-module-dark-${state}`);
  await page.getByRole('button', { name: 'Heat', exact: true }).click();
  await page.locator('.legend', { hasText: 'hottest' }).waitFor();
  await page.keyboard.press('Escape');
  await shot(page, `flame-by-heat-dark-${state}`);
  await page.goto(`${server.url}#flame?session=${session}`);
  await drawn(page, has, 'stage_weather');

  // A hidden subtree is gone, with its weight, until Back is pressed.
  await menuOf(page, 'stage_weather');
  await shot(page, `frame-menu-dark-${state}`);
  await page.click('#frame-menu [data-item=hide]');
  await drawn(page, hasNot, 'stage_weather');
  await shows(page, '#hidden-note', /A subtree is hidden/);
  await back();
  await drawn(page, has, 'stage_weather');

  // By keyboard alone: walk, zoom to a frame, magnify, undo both, open the menu.
  await page.focus('.flame-scroller');
  for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => window.__flamewire.zoomPath().length === 3);
  await settled(page);
  await page.keyboard.press('+');
  await page.waitForFunction(() => /span=/.test(location.hash));
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !/span=/.test(location.hash));
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => window.__flamewire.zoomPath().length === 2);
  await page.keyboard.press('Shift+F10');
  await page.locator('#frame-menu').waitFor();
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.item), 'hide');
  await page.keyboard.press('Escape');
  await page.waitForFunction(
    () => !document.querySelector('#frame-menu') && document.activeElement.className.includes('flame-scroller'),
  );

  // The wheel with Ctrl magnifies around the pointer.
  await page.goto(`${server.url}#flame?session=${session}`);
  await drawn(page, has, 'stage_weather');
  const at = await pointTo(page, 'stage_weather');
  await page.mouse.move(at.x, at.y);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -600);
  await page.keyboard.up('Control');
  await page.waitForFunction(() => /span=/.test(location.hash));
  await back();
  assert.doesNotMatch(page.url(), /span=/);

  await menuOf(page, 'stage_weather', 'copy-stack');
  await page.getByText('Stack copied').first().waitFor();
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).split('\n');
  assert.match(lines.at(-1), /stage_weather/);
  assert.ok(
    lines.some((line) => line.includes('simulate_round')),
    lines.join(' / '),
  );

  // Callers and callees, opened from the menu, and then those of a caller.
  await menuOf(page, 'stage_weather', 'callers');
  await shows(page, '#callers-of', /stage_weather.*demo-workload.*Self .* total .* samples/);
  await page.waitForFunction(() => {
    const [callers, callees] = window.__flamewire.halves();
    const root = (half) => half.find((frame) => frame.depth === 0)?.name ?? '';
    return (
      root(callers).includes('stage_weather') &&
      root(callees).includes('stage_weather') &&
      callers.some((frame) => frame.depth === 1 && frame.name.includes('simulate_round'))
    );
  });
  await shot(page, `callers-dark-${state}`);
  await page
    .getByRole('region', { name: 'Direct callers' })
    .getByRole('button', { name: /simulate_round/ })
    .first()
    .click();
  await shows(page, '#callers-of', /simulate_round/);
  await page.goBack();
  await shows(page, '#callers-of', /stage_weather/);
  await page.fill('.main [data-search]', 'visit_quadrant');
  await page.locator('.chooser button').first().click();
  await shows(page, '#callers-of', /visit_quadrant/);
  await page
    .getByRole('region', { name: 'Direct callees' })
    .getByRole('button', { name: /visit_quadrant/ })
    .first()
    .waitFor();
  await page.click('#theme');
  await shot(page, `callers-light-${state}`);

  // The functions of one module, grouped by file, and saved as they are shown.
  await page.click('#tab-functions');
  await page.getByLabel('Module', { exact: true }).selectOption('demo-workload');
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.function-row:not(.row-head) .cell:nth-child(6)')].every(
      (cell) => cell.textContent === 'demo-workload',
    ),
  );
  const row = page.locator('.function-row', { hasText: 'stage_weather(' }).first();
  await page.getByRole('button', { name: 'By file' }).click();
  const group = page.locator('.group-row', { hasText: 'demo.cc' });
  await group.waitFor();
  assert.match(page.url(), /module=demo-workload.*group=file/);
  await shot(page, `functions-by-file-light-${state}`);
  await page.fill('.main [data-search]', 'stage_weather');
  await row.waitFor();
  await group.getByRole('button').click();
  await row.waitFor({ state: 'detached' });
  const saved = page.waitForEvent('download');
  await page.click('#export-menu');
  await page.getByRole('button', { name: 'CSV' }).click();
  const csv = (await contentOf(await saved)).toString().split('\r\n');
  assert.match(csv[0], /^function,module,kind,file,line,self \(ns\),self %/);
  assert.ok(
    csv.length > 2 &&
      csv.slice(1, -1).every((line) => line.includes(',demo-workload,') && line.includes('stage_weather')),
  );
  await page.goBack();
  await page.locator('.group-row').first().waitFor({ state: 'detached' });

  // The picture is a PNG of the visible part.
  await page.goto(`${server.url}#flame?session=${session}`);
  await drawn(page, has, 'stage_weather');
  await page.click('#export-menu');
  const picture = page.waitForEvent('download');
  await page.getByRole('button', { name: 'PNG' }).click();
  const png = await contentOf(await picture);
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  const canvas = await page.locator('.flame-canvas').boundingBox();
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [Math.round(canvas.width), Math.round(canvas.height)]);
  assert.deepEqual(problems, []);
  await context.close();
}

test('shapes, frames and callers while the recording runs', () => walkThrough('live'));

test('shapes, frames and callers when the recording has ended', async () => {
  agent.child.kill('SIGTERM');
  await waitFor(async () => (await api(`/api/sessions/${session}`)).state === 'ended', 'the end', 60);
  await walkThrough('replayed');
});
