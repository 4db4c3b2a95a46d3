// What speedscope's own page makes of files: node speedscope.mjs OUTPUT FILE... writes a JSON array with, for each file, how the page
// says that it read it, what it saves of it (its own data as a file of its format), and the rows of the table of functions that it shows.
import { readFileSync, writeFileSync } from 'node:fs';
import { launch, speedscope } from '../../e2e/browser.mjs';
import { serveFolder } from '../../e2e/serve_folder.mjs';

const [output, ...files] = process.argv.slice(2);
const folder = await serveFolder(speedscope());
const browser = await launch();

async function read(file) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(`error: ${error}`));
  try {
    await page.goto(folder.url);
    await page.locator('#file').waitFor({ state: 'attached' });
    await page.setInputFiles('#file', file);
    // The bar with the views stands there when the profile does.
    await page.getByText('Left Heavy').waitFor({ timeout: 30_000 });
    const saving = page.waitForEvent('download');
    await page.getByText('Export').click();
    const saved = JSON.parse(readFileSync(await (await saving).path(), 'utf8'));
    await page.getByText('Sandwich').click();
    const rows = await page.waitForFunction(() => {
      const found = [...document.querySelectorAll('tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim())).filter((cells) => cells.length === 3 && cells[1].includes('%'));
      return found.length > 0 && found;
    });
    return { imported: said.find((line) => line.startsWith('Importing as')), errors: said.filter((line) => /error/i.test(line)), saved, rows: await rows.jsonValue() };
  } catch (error) {
    throw new Error(`${file}: ${error.message}\n${said.join('\n')}`, { cause: error });
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
