// The list of sessions on a real server: naming, tagging, pinning, searching and deleting by mouse and by keyboard, in
// pages. The page shows what is on the disk.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeSource, launch, openPage, shot, shows } from './browser.mjs';
import { Programs, built, waitFor } from './programs.mjs';

const COPIES = 250;

const programs = new Programs();
const folder = join(programs.folder, 'data', 'sessions');
let browser;
let server;

const api = async (path) => (await fetch(new URL(path, server.url))).json();
const label = (id) => JSON.parse(readFileSync(join(folder, `${id}.flw.label.json`), 'utf8')).label;
const rows = (page) => page.$$eval('tr[data-session]', (list) => list.map((row) => row.dataset.session));
const row = (page, id) => page.locator(`tr[data-session="${id}"]`);

before(async () => {
  browser = await launch();
  mkdirSync(folder, { recursive: true });
  const file = join(programs.folder, 'small.flw');
  const agent = programs.start(
    'flamewire-agent',
    '--output',
    file,
    '--frequency',
    199,
    '--',
    built('lines-workload'),
    1,
  );
  await agent.ended;
  for (let i = 0; i < COPIES; i++) copyFileSync(file, join(folder, `run-${String(i).padStart(3, '0')}.flw`));
  server = await programs.server('--keep-count', 1000, '--keep-size', '5G');
  await waitFor(
    async () => (await api('/api/sessions?limit=1000')).sessions.every((session) => session.samples > 0),
    'all sessions to be read',
    60,
  );
});
after(async () => {
  await browser?.close();
  await programs.stop();
});

test('a session is named, tagged and pinned, and found by its labels', async () => {
  const { page, context, problems } = await openPage(browser, `${server.url}#sessions`, {});
  await row(page, 'run-249').waitFor();
  await shows(page, '#keep-rules', 'kept: at most 1,000 sessions, 5.00 GiB');
  // By mouse.
  await row(page, 'run-249')
    .getByRole('button', { name: /^Rename / })
    .click();
  await page.keyboard.type('Before <b>the</b> fix');
  await page.keyboard.press('Enter');
  await row(page, 'run-249').getByRole('button', { name: 'Before <b>the</b> fix', exact: true }).waitFor();
  assert.equal(label('run-249').name, 'Before <b>the</b> fix');
  await row(page, 'run-249')
    .getByRole('button', { name: /^Add a tag/ })
    .click();
  await page.keyboard.type('nonsense');
  await page.keyboard.press('Enter');
  await page.getByText('A tag is KEY=VALUE').waitFor();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('branch=main');
  await page.keyboard.press('Enter');
  await row(page, 'run-249').getByRole('button', { name: 'branch=main', exact: true }).waitFor();
  await row(page, 'run-249').getByRole('button', { name: /^Pin / }).click();
  await row(page, 'run-249').locator('[aria-pressed="true"]').waitFor();
  assert.deepEqual(label('run-249'), { name: 'Before <b>the</b> fix', tags: { branch: 'main' }, keep: true });

  // By keyboard alone: the focus returns to its starting point. Escape discards the edit.
  await row(page, 'run-248')
    .getByRole('button', { name: /^Rename / })
    .focus();
  await page.keyboard.press('Enter');
  await page.keyboard.type('never');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.activeElement?.title === 'Rename');
  assert.equal(existsSync(join(folder, 'run-248.flw.label.json')), false);
  await page.keyboard.press('Enter');
  await page.keyboard.type('After');
  await page.keyboard.press('Enter');
  await waitFor(
    () => existsSync(join(folder, 'run-248.flw.label.json')) && label('run-248').name === 'After',
    'the name on disk',
  );
  await page.waitForFunction(() => document.activeElement?.title === 'Rename');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.keyboard.type('branch=topic');
  await page.keyboard.press('Enter');
  await waitFor(() => label('run-248').tags.branch === 'topic', 'the tag on disk');
  await row(page, 'run-248').getByRole('button', { name: 'branch=topic', exact: true }).waitFor();
  await shot(page, 'sessions-named-dark');

  // A click on a tag finds its sessions; a search finds any words.
  await row(page, 'run-249').getByRole('button', { name: 'branch=main', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('tr[data-session]').length === 1);
  assert.deepEqual(await rows(page), ['run-249']);
  await page.fill('.main [data-search]', 'BRANCH= run-24');
  await page.waitForFunction(() => document.querySelectorAll('tr[data-session]').length === 2);
  await page.fill('.main [data-search]', 'branch=main');
  await page.waitForFunction(() => document.querySelectorAll('tr[data-session]').length === 1);
  await row(page, 'run-249').getByRole('button', { name: 'Remove the tag branch=main' }).click();
  await page.getByText('No session matches').waitFor();
  assert.deepEqual(label('run-249').tags, {});
  await page.getByTitle('Clear', { exact: true }).click();
  await row(page, 'run-249').waitFor();

  // The rest of the page shows the name, too.
  await row(page, 'run-249').getByRole('button', { name: 'Before <b>the</b> fix', exact: true }).click();
  await shows(page, '#session-menu', /Before <b>the<\/b> fix/);
  await page.waitForFunction(() => document.title.startsWith('Before <b>the</b> fix'));
  assert.deepEqual(problems, []);
  await context.close();
});

test('many sessions are shown in pages, and deleted', async () => {
  const { page, context, problems } = await openPage(browser, `${server.url}#sessions`, { theme: 'light' });
  const newestFirst = (await api('/api/sessions?limit=1000')).sessions.map((session) => session.id);
  await row(page, newestFirst[0]).waitFor();
  assert.deepEqual(await rows(page), newestFirst.slice(0, 100));
  await shows(page, '.pages', '1–100 of 250');
  await shot(page, 'sessions-light');
  await page.getByRole('button', { name: 'Older sessions' }).click();
  await row(page, newestFirst[100]).waitFor();
  await page.getByRole('button', { name: 'Older sessions' }).click();
  await row(page, newestFirst[249]).waitFor();
  await shows(page, '.pages', '201–250 of 250');
  assert.equal(await page.getByRole('button', { name: 'Older sessions' }).isDisabled(), true);
  await row(page, newestFirst[249])
    .getByRole('button', { name: /^Delete / })
    .click();
  await page.click('#confirm-delete');
  await shows(page, '.pages', '201–249 of 249');
  assert.equal(existsSync(join(folder, `${newestFirst[249]}.flw`)), false);
  // A search starts at its first page.
  await page.fill('.main [data-search]', newestFirst[5]);
  await page.waitForFunction(() => document.querySelectorAll('tr[data-session]').length === 1);
  assert.deepEqual(problems, []);
  await context.close();
});

for (const theme of ['dark', 'light'])
  test(`axe-core finds nothing serious in the list during an edit (${theme})`, async () => {
    const { page, context } = await openPage(browser, `${server.url}#sessions`, { theme });
    await row(page, 'run-100').or(row(page, 'run-249')).first().waitFor();
    await page.evaluate(axeSource());
    const check = async (where) => {
      const issues = await page.evaluate(async () =>
        (await window.axe.run(document, { resultTypes: ['violations'] })).violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.target)}`),
      );
      assert.deepEqual(issues, [], where);
    };
    await check('list');
    await page
      .getByRole('button', { name: /^Rename / })
      .first()
      .click();
    await check('renaming');
    await page.keyboard.press('Escape');
    await page
      .getByRole('button', { name: /^Add a tag/ })
      .first()
      .click();
    await check('tagging');
    await shot(page, `sessions-tagging-${theme}`);
    await context.close();
  });

test('selected sessions are merged into one', async () => {
  const { page, context, problems } = await openPage(browser, `${server.url}#sessions`, {});
  const [first, second] = ['run-247', 'run-246'];
  await row(page, first).getByRole('checkbox').check();
  assert.equal(await page.getByRole('button', { name: 'Merge 1' }).isDisabled(), true);
  await row(page, second).getByRole('checkbox').focus();
  await page.keyboard.press('Space');
  await shot(page, 'sessions-merge');
  await page.getByRole('button', { name: 'Merge 2' }).click();
  await page.waitForURL(/session=/);
  const made = new URLSearchParams(page.url().split('?')[1]).get('session');
  const samples = async (id) => (await api(`/api/sessions/${id}`)).samples;
  assert.ok(made && made !== first && made !== second);
  assert.equal(await samples(made), (await samples(first)) + (await samples(second)));
  assert.deepEqual(problems, []);
  await context.close();
});
