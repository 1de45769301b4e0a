// Part of npm run lint: checks that the package, as it would be published, can be imported and
// typed from every module system, and knows its version. Does not compile the addon.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const FOLDER = join('build', 'package');

mkdirSync(FOLDER, { recursive: true });
execFileSync(process.execPath, [join('scripts', 'build.mjs'), 'dist'], { stdio: 'inherit' });
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const require = createRequire(import.meta.url);
const { PACKAGE_VERSION } = require('../dist/native/package-version.js');
if (PACKAGE_VERSION !== version) {
  console.error(
    `src/native/package-version.ts has version ${PACKAGE_VERSION}, and package.json has ${version}`,
  );
  process.exit(1);
}
const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', FOLDER];
const tarball = join(FOLDER, execFileSync('npm', args, { encoding: 'utf8' }).trim());
for (const [command, ...options] of [
  ['publint', 'run', tarball, '--strict'],
  ['attw', tarball, '--format', 'ascii', '--profile', 'strict'],
]) {
  const { status } = spawnSync('npx', [command, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
