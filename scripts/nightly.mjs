// npm run test:nightly [-- PART…] [--again] [--list]: runs everything that takes too long for each change, one
// part after another, on the last commit. Goes on after a part that fails. Writes down in
// test/nightly.md what each part said of which commit, and leaves out what has passed on this one, so
// that an interrupted run is continued by the same command; --again runs that, too. Requires root. The logs are in
// build/nightly.
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { format, resolveConfig } from 'prettier';

import { KERNELS } from '../test/kernels/kernels.mjs';
import { ENVIRONMENTS } from './environments.mjs';

const TABLE = join('test', 'nightly.md');
const LOGS = join('build', 'nightly');
const HEAD = `# What \`npm run test:nightly\` said last

`;

const many = (prefix, names, command) =>
  names.map((name) => [`${prefix} ${name}`, `${command} ${name}`]);

/** Each with its command. */
const PARTS = new Map([
  ['soak', 'npm run test:soak'],
  ['vms', 'npm run test:vms'],
  ['fuzz', 'npm run fuzz -- --seconds 300'],
  ['package', 'npm run test:package'],
  ['asan', 'npm run test:asan'],
  ['mutations', 'npm run test:mutations'],
  ['nodes', 'npm run test:nodes'],
  ['stories', 'npm run test:stories'],
  ...many('environment', Object.keys(ENVIRONMENTS), 'npm run test:environments --'),
  ...many('kernel', Object.keys(KERNELS), 'npm run test:kernels --'),
]);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    again: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
});
const unknown = positionals.filter((name) => !PARTS.has(name));
if (unknown.length > 0) {
  console.error(`unknown part ${unknown.join(', ')}; choose from ${[...PARTS.keys()].join(', ')}`);
  process.exit(2);
}
const rows = readRows();
if (values.list) {
  console.log(table());
  process.exit();
}
const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim();
const changed = git('status', '--porcelain', '--', '.', `:!${TABLE}`);
if (changed !== '') {
  console.error(`commit first; the working tree has changes:\n${changed}`);
  process.exit(2);
}
const commit = git('rev-parse', '--short', 'HEAD');

mkdirSync(LOGS, { recursive: true });
for (const name of positionals.length > 0 ? positionals : PARTS.keys()) {
  const last = rows.get(name);
  if (!values.again && last?.commit === commit && last.result.startsWith('passed')) continue;
  rows.set(name, await run(name));
  await writeRows();
}
console.log(table());
process.exitCode = [...rows.values()].some((row) => row.commit === commit && isRed(row)) ? 1 : 0;

async function run(name) {
  const log = join(LOGS, `${name.replace(' ', '-')}.log`);
  const output = openSync(log, 'w');
  const began = new Date();
  console.log(`${name}: ${PARTS.get(name)}`);
  const env = { ...process.env, CI: '1' };
  const stdio = ['ignore', output, output];
  const child = spawn('sh', ['-c', PARTS.get(name)], { stdio, env });
  const code = await new Promise((done) => child.once('close', (status) => done(status ?? 1)));
  closeSync(output);
  const minutes = Math.ceil((Date.now() - began.getTime()) / 60_000);
  const result = `${code === 0 ? 'passed' : `FAILED (${code})`}, ${minutes} min`;
  console.log(`${name}: ${result}${code === 0 ? '' : `; see ${log}`}`);
  return { commit, when: began.toISOString().slice(0, 16).replace('T', ' '), result };
}

function isRed({ result }) {
  return !result.startsWith('passed');
}

/** What the last runs have said, by part. */
function readRows() {
  const lines = readFileSync(TABLE, 'utf8').split('\n');
  const cells = lines.map((line) => line.split('|').map((cell) => cell.trim()));
  return new Map(
    cells
      .filter(([, part]) => PARTS.has(part))
      .map(([, part, commitThen, when, result]) => [part, { commit: commitThen, when, result }]),
  );
}

function table() {
  const line = (...cells) => `| ${cells.join(' | ')} |\n`;
  const rowOf = (name) => {
    const { commit: of = '', when = '', result = 'never run' } = rows.get(name) ?? {};
    return line(name, of, when, result);
  };
  const head = line('part', 'commit', 'when (UTC)', 'result') + line('---', '---', '---', '---');
  return head + [...PARTS.keys()].map(rowOf).join('');
}

async function writeRows() {
  const options = { ...(await resolveConfig(TABLE)), filepath: TABLE };
  writeFileSync(TABLE, await format(HEAD + table(), options));
}
