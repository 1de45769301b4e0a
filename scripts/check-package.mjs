// Part of npm run lint: checks that the package, as it would be published, can be imported and
// typed from every module system. Does not compile the addon.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join('build', 'package');

rmSync('dist', { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', FOLDER];
const tarball = join(FOLDER, execFileSync('npm', args, { encoding: 'utf8' }).trim());
for (const [command, ...options] of [
  ['publint', 'run', tarball, '--strict'],
  ['attw', tarball, '--format', 'ascii', '--profile', 'strict'],
]) {
  const { status } = spawnSync('npx', [command, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
