// Writes the files of a folder as one C++ source for web_assets.h: node embed.mjs FOLDER OUTPUT.cc
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const [folder, output] = process.argv.slice(2);
if (!folder || !output) throw new Error('usage: node embed.mjs FOLDER OUTPUT.cc');

const names = readdirSync(folder).sort();
const text = [
  '// Made by web/embed.mjs.',
  '#include "web_assets.h"',
  '',
  'namespace flamewire::web {',
  'namespace {',
  '',
];
names.forEach((name, i) => {
  const bytes = readFileSync(join(folder, name));
  text.push(`// ${name}`, `constexpr char bytes_${i}[] = {`);
  for (let at = 0; at < bytes.length; at += 40)
    text.push(`${[...bytes.subarray(at, at + 40)].map((byte) => (byte << 24) >> 24).join(',')},`);
  text.push('0};', '');
});
text.push('constexpr Asset all[] = {');
names.forEach((name, i) => {
  const type = types[extname(name)];
  if (!type) throw new Error(`no content type for ${name}`);
  text.push(`    {"/${name}", "${type}", {bytes_${i}, sizeof bytes_${i} - 1}},`);
});
text.push(
  '};',
  '',
  '}  // namespace',
  '',
  'std::span<const Asset> assets() {',
  '    return all;',
  '}',
  '',
  '}  // namespace flamewire::web',
  '',
);
writeFileSync(output, text.join('\n'));
