// Compiles the keeper, a static program, into build/Release, or where `--to FOLDER` says; with CC, or
// cc. Linux only.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const FOLDER = join('native', 'keeper');

/**
 * @param flags more flags of the compiler
 * @returns {string} its path
 */
export function buildKeeper({ cc = process.env.CC || 'cc', to, flags = [] }) {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const sources = readdirSync(FOLDER).filter((name) => name.endsWith('.c'));
  const binary = join(to, 'exitwatch-keeper');
  mkdirSync(to, { recursive: true });
  const args = [
    ...['-std=c11', '-O2', '-Wall', '-Wextra', '-D_GNU_SOURCE', `-DKEEPER_VERSION="${version}"`],
    ...[...flags, '-o', binary, ...sources.map((name) => join(FOLDER, name))],
  ];
  // Some systems have no static C library.
  for (const link of flags.includes('-fsanitize=address,undefined')
    ? [[]]
    : [['-static', '-s'], []]) {
    const isLast = link.length === 0;
    const stdio = ['ignore', 'inherit', isLast ? 'inherit' : 'ignore'];
    if (spawnSync(cc, [...args, ...link], { stdio }).status === 0) return binary;
  }
  throw new Error(`${cc} cannot compile the keeper`);
}

if (process.argv[1]?.endsWith('build-keeper.mjs') && process.platform === 'linux') {
  const { values } = parseArgs({ options: { to: { type: 'string', default: 'build/Release' } } });
  buildKeeper(values);
}
