// Controls Debian's Chromium through playwright-core, with everything disabled that would access the network.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const packages = process.env.FLAMEWIRE_E2E_PACKAGES;
const require = createRequire(packages ? join(packages, 'package.json') : import.meta.url);
const { chromium } = require('playwright-core');

// The source of the accessibility checker, which runs inside the page.
export const axeSource = () => readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// The folder that contains speedscope's page.
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
    // With subpixel positioning, the placement of letters can depend on pages with another pixel ratio drawn earlier.
    '--disable-font-subpixel-positioning',
  ],
};

// A Chromium for several processes, which find it through FLAMEWIRE_BROWSER. Each creates its own contexts in it.
export const launchServer = () => chromium.launchServer(options);

export async function launch() {
  const shared = process.env.FLAMEWIRE_BROWSER;
  return shared ? chromium.connect(shared) : chromium.launch(options);
}

// Opens a page and collects its problems: errors, violations of the content policy, and requests to other origins.
export async function openPage(
  browser,
  address,
  { theme = 'dark', width = 1440, height = 900, ratio = 1, context: given, firstRun = false } = {},
) {
  const context =
    given ?? (await browser.newContext({ colorScheme: theme, viewport: { width, height }, deviceScaleFactor: ratio }));
  // The guide opens on its own on the first visit. Only the tests of the guide want that.
  if (!firstRun)
    await context.addInitScript(
      () => localStorage.getItem('flamewire-guide') ?? localStorage.setItem('flamewire-guide', '{"seen":true}'),
    );
  // All waits are for conditions, so a long timeout costs nothing. A busy machine may be four times slower.
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

// Stores a picture of the page in the folder FLAMEWIRE_SCREENSHOTS, if that is set.
export async function shot(page, name, options = {}) {
  const folder = process.env.FLAMEWIRE_SCREENSHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), ...options });
}

export const frames = (page) => page.evaluate(() => window.__flamewire.frames());
export const inspect = (page) => page.evaluate(() => window.__flamewire.state());
export const settled = (page) => page.waitForFunction(() => window.__flamewire?.settled());

// Waits until the text of the first element that `selector` finds equals `wanted`, or matches it if it is a RegExp.
// A single check is not enough: the page changes with each answer that arrives.
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

// The content of a saved file. The path of a download is not accessible in a shared browser.
export async function contentOf(download) {
  const parts = [];
  for await (const part of await download.createReadStream()) parts.push(part);
  return Buffer.concat(parts);
}

// The pixels of a part of the screen (CSS pixels, for a page of ratio 1) as [red, green, blue], row by row.
// The page cannot read the pixels of a canvas on which a worker draws.
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

// The share of pixels in which two screenshots of one size differ by more than a shifted letter's edge does.
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
