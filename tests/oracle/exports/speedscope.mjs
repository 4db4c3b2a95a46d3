// Reads files with speedscope's own page: node speedscope.mjs OUTPUT FILE... writes a JSON array with, for each file, the format that the page
// reports, the file that it saves (its own data in its format), and the rows of the displayed table of functions.
import { readFileSync, writeFileSync } from 'node:fs';
import { launch, speedscope } from '../../e2e/browser.mjs';
import { serveFolder } from '../../e2e/serve_folder.mjs';

const [output, ...files] = process.argv.slice(2);
const folder = await serveFolder(speedscope());
const browser = await launch();

async function read(file) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const messages = [];
  page.on('console', (message) => messages.push(message.text()));
  page.on('pageerror', (error) => messages.push(`error: ${error}`));
  try {
    await page.goto(folder.url);
    await page.locator('#file').waitFor({ state: 'attached' });
    await page.setInputFiles('#file', file);
    // The view bar appears together with the profile.
    await page.getByText('Left Heavy').waitFor({ timeout: 30_000 });
    const saving = page.waitForEvent('download');
    await page.getByText('Export').click();
    const saved = JSON.parse(readFileSync(await (await saving).path(), 'utf8'));
    await page.getByText('Sandwich').click();
    const rows = await page.waitForFunction(() => {
      const found = [...document.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim())).filter((cells) => cells.length === 3 && cells[1].includes('%'));
      return found.length > 0 && found;
    });
    return { imported: messages.find((line) => line.startsWith('Importing as')), errors: messages.filter((line) => /error/i.test(line)), saved, rows: await rows.jsonValue() };
  } catch (error) {
    throw new Error(`${file}: ${error.message}\n${messages.join('\n')}`, { cause: error });
  } finally {
    await page.close();
  }
}

try {
  const answers = [];
  for (const file of files) answers.push(await read(file));
  writeFileSync(output, JSON.stringify(answers));
} finally {
  await browser.close();
  folder.close();
}
