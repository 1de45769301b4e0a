// npm run test:stories [-- --write] [NAME]…: boots Debian's kernel with this host's systemd, ends services
// in many ways, and compares what exitwatch and systemd's log say of each with the tables of the docs, or
// writes them. With names, of these alone.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { format, resolveConfig } from 'prettier';

import { boot, despiteEmulator } from './boot.mjs';
import { fetchKernel } from './debian-kernel.mjs';
import { REPOSITORY } from './folders.mjs';
import { sectionsOf } from './story-pages.mjs';
import { buildSystemdImage } from './systemd-image.mjs';

const KERNEL = '6.12';
const GUEST = join(import.meta.dirname, 'guest-systemd');

const guestFile = (name, mode) => ({ content: readFileSync(join(GUEST, name)), mode });

const SERVICE = `[Unit]
After=basic.target
Requires=basic.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
Environment=PATH=/usr/local/bin:/usr/sbin:/usr/bin
ExecStart=/usr/bin/node /guest/stories.cjs
`;

const FILES = {
  '/guest/stories.cjs': guestFile('stories.cjs'),
  '/usr/lib/systemd/system-shutdown/tell': guestFile('shutdown.sh', 0o755),
  '/etc/systemd/system/stories.service': { content: SERVICE },
  '/etc/systemd/system/default.target': {
    content: '[Unit]\nRequires=stories.service\nAllowIsolate=yes\n',
  },
};

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    write: { type: 'boolean', default: false },
    // Only downloads what it needs.
    prepare: { type: 'boolean', default: false },
    // The messages of a run of before, or where to keep those of this one.
    from: { type: 'string' },
    keep: { type: 'string' },
  },
});

function runGuest() {
  const { arch, file: kernel } = fetchKernel(KERNEL);
  const initramfs = buildSystemdImage(FILES);
  const some = names.length === 0 ? '' : `stories=${names.join(',')}`;
  return despiteEmulator(KERNEL, async () => {
    const messages = [];
    await boot({
      ...{ arch, kernel, initramfs, memory: 3072 },
      parameters: `rdinit=/init systemd.show_status=no ${some}`,
      onMessage: (message) => messages.push(message),
    });
    const failed = messages.find(({ type }) => type === 'failed');
    if (failed !== undefined) throw new Error(`the guest failed: ${failed.error}`);
    return messages;
  });
}

/** What another run tells alike: neither its ids and numbers, nor where lines break. */
const alike = (text) =>
  text
    .replaceAll(/[0-9a-f]{12}-\d+-\d+/g, 'ID')
    .replaceAll(/\d+(\.\d+)?/g, '#')
    .replaceAll(/[\s-]+/g, ' ')
    .trim();

function compare(path, name, wanted) {
  const page = readFileSync(join(REPOSITORY, path), 'utf8');
  const begin = `<!-- stories: ${name} -->\n`;
  const start = page.indexOf(begin) + begin.length;
  const end = page.indexOf('<!-- end -->', start);
  if (start < begin.length || end < 0) throw new Error(`${path} has no place for ${name}`);
  const found = page.slice(start, end);
  if (values.write) {
    writeFileSync(join(REPOSITORY, path), page.slice(0, start) + wanted + page.slice(end));
    return;
  }
  // Of a table, a run of some has some rows.
  const isPart = names.length > 0 && name === 'ways';
  const pieces = !isPart ? [wanted] : wanted.split('\n').filter((line) => line !== '');
  for (const piece of pieces) {
    if (alike(found).includes(alike(piece))) continue;
    console.error(`${path} differs from what was seen of ${name}:\n${piece}\n`);
    process.exitCode = 1;
  }
}

const optionsFor = async (path) => ({ ...(await resolveConfig(path)), filepath: path });

if (values.prepare) {
  fetchKernel(KERNEL);
  process.exit();
}

const messages =
  values.from === undefined ? await runGuest() : JSON.parse(readFileSync(values.from, 'utf8'));
if (values.keep !== undefined) writeFileSync(values.keep, JSON.stringify(messages, null, 1));
const sections = sectionsOf(messages);
for (const { path, name, text } of sections) compare(path, name, text);
if (values.write) {
  for (const path of new Set(sections.map((section) => join(REPOSITORY, section.path)))) {
    writeFileSync(path, await format(readFileSync(path, 'utf8'), await optionsFor(path)));
  }
}
