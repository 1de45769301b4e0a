// Runs `npm run build` unless its output exists and is newer than every source.
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const SOURCES = ['binding.gyp', 'package.json', 'tsconfig.json', 'tsconfig.build.json'];
const SOURCE_FOLDERS = ['native', 'src'];
const MADE = [
  ...['build/Release/exitwatch.node', 'dist/cli/main.js'],
  ...(process.platform === 'linux' ? ['build/Release/exitwatch-keeper'] : []),
];

const modified = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs;

const sources = [
  ...SOURCES,
  ...SOURCE_FOLDERS.flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((name) => join(folder, name)),
  ),
];
const newest = Math.max(...sources.map((path) => modified(path) ?? 0));
const oldest = Math.min(...MADE.map((path) => modified(path) ?? 0));
if (newest > oldest) {
  console.error('exitwatch: building; the first time, this takes a minute or two');
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  if (status !== 0) {
    console.error('exitwatch: cannot start, because the build failed');
    process.exit(status ?? 1);
  }
}
