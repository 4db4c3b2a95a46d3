// The page behind a token and below the path of a reverse proxy: a browser logs in, and all requests use that path.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { frames, launch, openPage, settled, shot, shows } from './browser.mjs';
import { Programs, waitFor } from './programs.mjs';

const TOKEN = 'a-token-for-this-test';
const PREFIX = '/tools/profiler/';

const programs = new Programs();
let browser;
let server;
let proxy;

// Removes its path prefix and has another page at its root, as proxies do.
function startProxy(port) {
  const listening = createServer((incoming, outgoing) => {
    if (!incoming.url.startsWith(PREFIX))
      return void outgoing.writeHead(incoming.url === '/favicon.ico' ? 204 : 418).end('another page');
    const onward = request(
      {
        host: '127.0.0.1',
        port,
        method: incoming.method,
        path: incoming.url.slice(PREFIX.length - 1),
        headers: incoming.headers,
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  return new Promise((resolve) => listening.listen(0, '127.0.0.1', () => resolve(listening)));
}

before(async () => {
  browser = await launch();
  const token = join(programs.folder, 'token');
  writeFileSync(token, `${TOKEN}\n`);
  server = await programs.server('--http-token-file', token, '--http-prefix', PREFIX);
  proxy = await startProxy(new URL(server.url).port);
  const demo = programs.start('demo-workload', 0);
  programs.start(
    'flamewire-agent',
    '--server',
    '127.0.0.1',
    '--port',
    server.agentPort,
    '--pid',
    demo.pid,
    '--frequency',
    499,
  );
});
after(async () => {
  await browser?.close();
  proxy?.closeAllConnections();
  proxy?.close();
  await programs.stop();
});

test('a browser logs in with the token, once', async () => {
  const place = `http://127.0.0.1:${proxy.address().port}${PREFIX}`;
  const { page, context, problems } = await openPage(browser, place);
  await shows(page, 'h1', 'Flamewire');
  await shot(page, 'login-dark');
  await page.getByLabel('Token').fill('not-the-token-at-all');
  await page.getByRole('button', { name: 'Log in' }).click();
  await shows(page, '[role=status]', /not the token/);
  await page.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  // The page is live, and the worker, the stream and the answers all come from below the proxy's path.
  await page.locator('.flame-scroller').waitFor();
  await settled(page);
  await waitFor(
    async () => (await frames(page)).some((frame) => frame.name.includes('stage_weather')),
    'the flame graph',
  );
  await waitFor(
    async () => Number((await page.locator('#status-samples').textContent()).replace(/\D/g, '')) > 1000,
    'live numbers',
  );
  assert.ok(
    page.workers().some((worker) => worker.url() === `${place}flame.js`),
    'no worker was loaded from below the prefix',
  );
  assert.equal(new URL(page.url()).pathname, PREFIX);
  assert.doesNotMatch(page.url(), /token/);
  const [cookie, ...others] = await context.cookies();
  assert.deepEqual([cookie.path, cookie.httpOnly, cookie.sameSite, others.length], [PREFIX, true, 'Strict', 0]);
  // A download and a second tab use the same login.
  const wanted = page.waitForEvent('download');
  await page.getByRole('button', { name: /^Save or share/ }).click();
  await page.locator('.menu a[download]', { hasText: 'SVG' }).click();
  assert.match((await wanted).url(), new RegExp(`${PREFIX}api/export/`));
  const again = await context.newPage();
  await again.goto(place);
  await again.locator('.flame-scroller').waitFor();
  await shot(again, 'behind-a-proxy-dark');
  assert.deepEqual(problems, []);
  await context.close();
});

test('logging out asks for the token again', async () => {
  const printed = /^page: (\S+)$/m.exec(server.text())[1];
  const { page, context, problems } = await openPage(browser, printed);
  await page.locator('.flame-scroller').waitFor();
  await page.locator('#connection').click();
  await shot(page, 'log-out-dark');
  await page.locator('#log-out').click();
  await page.getByLabel('Token').waitFor();
  assert.deepEqual(await context.cookies(), []);
  const again = await context.newPage();
  await again.goto(page.url());
  await again.getByLabel('Token').fill(TOKEN);
  await again.keyboard.press('Enter');
  await again.locator('.flame-scroller').waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test('the address that the server prints is enough', async () => {
  const printed = /^page: (\S+)$/m.exec(server.text())[1];
  const { page, context, problems } = await openPage(browser, printed);
  await page.locator('.flame-scroller').waitFor();
  assert.doesNotMatch(page.url(), /token/);
  // The token was exchanged for a cookie. Without the cookie, the page asks for a login.
  await context.clearCookies();
  await page.locator('[role=tab]', { hasText: 'Functions' }).click();
  await page
    .locator('[role=alert]', { hasText: /log in/ })
    .first()
    .waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});
