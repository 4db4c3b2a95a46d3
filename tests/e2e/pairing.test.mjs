// Pairing as a person does it: run the page's command on a target, see the encrypted connection, revoke the key.
// A server that accepts unencrypted agents shows a red warning.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { axeSource, launch, openPage, shows } from './browser.mjs';
import { Programs, waitFor } from './programs.mjs';

const shots = process.env.FLAMEWIRE_SCREENSHOTS ?? '';
const programs = new Programs();
const other = new Programs();
// An address that is not loopback stands for another machine.
const own = Object.values(networkInterfaces())
  .flat()
  .find((address) => address.family === 'IPv4' && !address.internal).address;
let browser;

const both = async (page, name) => {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  for (const theme of ['dark', 'light']) {
    await page.evaluate((wanted) => (document.documentElement.dataset.theme = wanted), theme);
    await page.screenshot({ path: join(shots, `pairing-${name}-${theme}.png`) });
  }
};
const accessible = async (page) => {
  await page.evaluate(axeSource());
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  assert.deepEqual(
    violations
      .filter(({ impact }) => ['serious', 'critical'].includes(impact))
      .map(({ id, nodes }) => [id, nodes[0].html]),
    [],
  );
};

before(async () => {
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await programs.stop();
  await other.stop();
});

test('the command on the page pairs an agent, and its key can be revoked', async () => {
  const server = await programs.server();
  const { page, problems } = await openPage(browser, server.url);
  const line = page.locator('.start .copy-line code');
  await line.waitFor();
  const words = (await line.textContent()).replace('$ ', '').split(' ');
  assert.deepEqual(words.slice(0, 2), ['flamewire-agent', '--server']);
  const code = words.at(-1);
  assert.match(code, /^[0-9a-f]{16}-[0-9a-f]{32}$/);
  await both(page, 'start');
  words[words.indexOf('--server') + 1] = own;
  const agent = programs.start(...words);
  await shows(page, '#connection', 'Connected');
  await page.click('#connection');
  await page.locator('.pop-body', { hasText: 'encrypted' }).waitFor();
  // The used code disappears; the next agent gets another one.
  await page.waitForFunction(
    (used) => ![...document.querySelectorAll('.copy-line code')].some((shown) => shown.textContent.includes(used)),
    code,
  );
  assert.match(await page.locator('.pop-body .copy-line code').textContent(), / --pair [0-9a-f]{16}-[0-9a-f]{32}$/);
  const paired = page.locator(`[data-key="${code.slice(0, 16)}"]`);
  await paired.locator('.faint', { hasText: 'connected' }).waitFor();
  await both(page, 'paired');
  await accessible(page);
  await paired.getByRole('button', { name: /Withdraw/ }).click();
  await paired.waitFor({ state: 'detached' });
  await shows(page, '#connection', 'No agent');
  await waitFor(() => agent.text().includes('pairing keys of the two ends are not the same'), 'the refusal');
  await page.locator('[data-turned-away]', { hasText: 'its pairing code is not from this server' }).first().waitFor();
  assert.deepEqual(problems, []);
});

test('without encryption the page shows a red warning', async () => {
  const server = await other.server('--insecure');
  const { page, problems } = await openPage(browser, server.url);
  await page.locator('[data-insecure]', { hasText: '--insecure' }).waitFor();
  other.start('flamewire-agent', '--server', own, '--port', server.agentPort, '--insecure');
  await shows(page, '#connection', 'Not encrypted');
  await page.locator('.connection-bad').waitFor();
  await page.click('#connection');
  await page.locator('.is-insecure', { hasText: 'not encrypted: others can read and change it' }).waitFor();
  await both(page, 'insecure');
  // This server runs with --http-open: there are no logins, so there is no log-out.
  assert.equal(await page.locator('#log-out').count(), 0);
  await accessible(page);
  assert.deepEqual(problems, []);
});
