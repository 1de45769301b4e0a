import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

import { PROGRAMS, REPOSITORY } from './programs';

const TESTS = join(__dirname, '..');

/**
 * Compiles the C programs of the tests that are not compiled yet. Jest calls it once before all tests;
 * another run may be doing the same.
 */
export default function compilePrograms(): void {
  requireFreshBuild();
  mkdirSync(PROGRAMS, { recursive: true });
  compileAll('programs', '', ['-pthread']);
  compileAll('preload', '.so', ['-shared', '-fPIC']);
}

function compileAll(folder: string, suffix: string, flags: readonly string[]): void {
  const names = readdirSync(join(TESTS, folder));
  const newestHeader = newest(names.filter((name) => name.endsWith('.h')).map(pathIn(folder)));
  for (const name of names.filter((other) => other.endsWith('.c'))) {
    const source = pathIn(folder)(name);
    const target = join(PROGRAMS, `${basename(name, '.c')}${suffix}`);
    if (modified(target) > Math.max(newestHeader, modified(source))) continue;
    const fresh = `${target}.${process.pid}`;
    execFileSync(
      process.env['CC'] ?? 'cc',
      ['-O1', '-Wall', '-Wextra', ...flags, source, '-o', fresh],
      { stdio: 'inherit' },
    );
    renameSync(fresh, target);
  }
}

/** Tests run dist/: one that is older than src/ would show what the product did before a change. */
function requireFreshBuild(): void {
  const [src, dist] = ['src', 'dist'].map((folder) => join(REPOSITORY, folder)) as [string, string];
  const sources = readdirSync(src, { recursive: true, encoding: 'utf8' });
  const isStale = (name: string) =>
    name.endsWith('.ts') &&
    modified(join(src, name)) > modified(join(dist, name.replace(/\.ts$/, '.js')));
  const stale = sources.find(isStale);
  if (stale !== undefined)
    throw new Error(`dist/ is older than ${join('src', stale)}; run \`npm run build\``);
}

const pathIn = (folder: string) => (name: string) => join(TESTS, folder, name);

const newest = (paths: readonly string[]) => Math.max(0, ...paths.map(modified));

/** 0 if it does not exist. */
function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
