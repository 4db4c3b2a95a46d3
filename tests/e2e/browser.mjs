// Debian's Chromium through playwright-core, without anything that would talk to the outside.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const packages = process.env.FLAMEWIRE_E2E_PACKAGES;
const require = createRequire(packages ? join(packages, 'package.json') : import.meta.url);
const { chromium } = require('playwright-core');

// The checker of accessibility, as text: it runs inside of the page.
export const axeSource = () => readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// The folder of speedscope's page.
export const speedscope = () => join(dirname(require.resolve('speedscope/package.json')), 'dist/release');

export const CHROMIUM = process.env.FLAMEWIRE_CHROMIUM ?? '/usr/bin/chromium';

const options = {
  executablePath: CHROMIUM,
  args: [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    // A process that has drawn pages of one pixel a pixel goes on placing letters as it did there, or not.
    '--disable-font-subpixel-positioning',
  ],
};

// A Chromium for several processes, which know it by the environment; each has its own contexts in it.
export const launchServer = () => chromium.launchServer(options);

export async function launch() {
  const shared = process.env.FLAMEWIRE_BROWSER;
  return shared ? chromium.connect(shared) : chromium.launch(options);
}

// A page that fails the test on any error of its own, on a violated content policy, and on a request to elsewhere.
export async function openPage(
  browser,
  address,
  { theme = 'dark', width = 1440, height = 900, ratio = 1, context: given, firstRun = false } = {},
) {
  const context =
    given ?? (await browser.newContext({ colorScheme: theme, viewport: { width, height }, deviceScaleFactor: ratio }));
  // The guide opens by itself for those who have never seen it; only its own test has not.
  if (!firstRun)
    await context.addInitScript(
      () => localStorage.getItem('flamewire-guide') ?? localStorage.setItem('flamewire-guide', '{"seen":true}'),
    );
  // Waits are for conditions; a busy machine may be four times slower.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(`error in the page: ${error.stack ?? error}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|ERR_CONNECTION/.test(message.text()))
      problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(address).origin) && !request.url().startsWith('data:'))
      problems.push(`request to ${request.url()}`);
  });
  await page.goto(address);
  return { page, context, problems };
}

export const frames = (page) => page.evaluate(() => window.__flamewire.frames());
export const inspect = (page) => page.evaluate(() => window.__flamewire.state());
export const settled = (page) => page.waitForFunction(() => window.__flamewire?.settled());

// Waits until the text of the first element that `selector` finds is `wanted` (a string: whole; a RegExp: somewhere in it). What the
// page shows follows from answers that come one by one, so a text that is looked at once may be of a moment before.
export async function shows(page, selector, wanted) {
  const pattern = wanted instanceof RegExp ? [wanted.source, wanted.flags] : null;
  try {
    await page.waitForFunction(
      ([where, text, regexp]) => {
        const found = document.querySelector(where)?.textContent;
        return found !== undefined && (regexp ? new RegExp(...regexp).test(found) : found === text);
      },
      [selector, wanted, pattern],
      { timeout: 40_000 },
    );
  } catch (error) {
    const found = await page.evaluate(
      (where) => document.querySelector(where)?.textContent ?? 'nothing there',
      selector,
    );
    throw new Error(`${selector} should show ${wanted}, but shows: ${found}`, { cause: error });
  }
}

// What was saved. A shared browser keeps its files to itself.
export async function contentOf(download) {
  const parts = [];
  for await (const part of await download.createReadStream()) parts.push(part);
  return Buffer.concat(parts);
}

// What is on the screen at a place of the page (CSS pixels, of a page of ratio 1), as [red, green, blue] by pixel, row by row. A
// canvas that a worker draws on tells nobody what it has.
export async function pixels(page, clip) {
  const png = (await page.screenshot({ clip })).toString('base64');
  return page.evaluate(async (text) => {
    const image = await createImageBitmap(
      new Blob([Uint8Array.from(atob(text), (character) => character.charCodeAt(0))]),
    );
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    return Array.from({ length: data.length / 4 }, (_, i) => [data[4 * i], data[4 * i + 1], data[4 * i + 2]]);
  }, png);
}

// The share of pixels in which two screenshots of one size differ by more than letters do that were put down elsewhere.
export const unlike = (page, one, other) =>
  page.evaluate(
    async (texts) => {
      const [a, b] = await Promise.all(
        texts.map(async (text) => {
          const image = await createImageBitmap(
            new Blob([Uint8Array.from(atob(text), (character) => character.charCodeAt(0))]),
          );
          const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
          context.drawImage(image, 0, 0);
          return context.getImageData(0, 0, image.width, image.height).data;
        }),
      );
      if (a.length !== b.length) return 1;
      let count = 0;
      for (let i = 0; i < a.length; i += 4)
        if ([0, 1, 2].some((channel) => Math.abs(a[i + channel] - b[i + channel]) > 8)) count++;
      return count / (a.length / 4);
    },
    [one.toString('base64'), other.toString('base64')],
  );
