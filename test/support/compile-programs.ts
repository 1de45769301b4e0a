import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

import { PROGRAMS, REPOSITORY } from './programs';

const TESTS = join(__dirname, '..');

const execute = promisify(execFile);

/**
 * Compiles the C programs of the tests that are not compiled yet. Jest calls it once before all tests;
 * another run may be doing the same.
 */
export default async function compilePrograms(): Promise<void> {
  requireFreshBuild();
  mkdirSync(PROGRAMS, { recursive: true });
  const left = [
    ...staleIn('programs', '', ['-pthread']),
    ...staleIn('preload', '.so', ['-shared', '-fPIC']),
  ];
  const compileSome = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { source, target, flags } = next;
      const fresh = `${target}.${process.pid}`;
      await compile(['-O1', '-Wall', '-Wextra', ...flags, source, '-o', fresh]);
      renameSync(fresh, target);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, compileSome));
}

/** The programs that are missing, or older than their source or a header. */
function staleIn(folder: string, suffix: string, flags: readonly string[]) {
  const names = readdirSync(join(TESTS, folder));
  const pathOf = (name: string) => join(TESTS, folder, name);
  const newestHeader = newest(names.filter((name) => name.endsWith('.h')).map(pathOf));
  return names
    .filter((name) => name.endsWith('.c'))
    .map((name) => ({
      source: pathOf(name),
      target: join(PROGRAMS, `${basename(name, '.c')}${suffix}`),
      flags,
    }))
    .filter(({ source, target }) => modified(target) <= Math.max(newestHeader, modified(source)));
}

async function compile(args: readonly string[]): Promise<void> {
  const { stderr } = await execute(process.env['CC'] ?? 'cc', args);
  process.stderr.write(stderr);
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

const newest = (paths: readonly string[]) => Math.max(0, ...paths.map(modified));

/** 0 if it does not exist. */
function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
