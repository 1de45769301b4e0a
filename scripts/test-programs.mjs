// Compiles the C programs of the tests into build/test-programs, unless they are there.
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);

const TEST = join(import.meta.dirname, '..', 'test');
const FOLDER = join(import.meta.dirname, '..', 'build', 'test-programs');

/** What is compiled from which folder of test/. */
const KINDS = [
  { from: 'programs', suffix: '', flags: ['-pthread'] },
  { from: 'preload', suffix: '.so', flags: ['-shared', '-fPIC'] },
];

/** Others may be doing the same. */
export async function compileTestPrograms(folder = FOLDER, compiler = process.env.CC ?? 'cc') {
  mkdirSync(folder, { recursive: true });
  const left = KINDS.flatMap((kind) => staleOf(kind, folder));
  const compileSome = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { source, target, flags } = next;
      const fresh = `${target}.${process.pid}`;
      const args = ['-O1', '-Wall', '-Wextra', ...flags, source, '-o', fresh];
      const { stderr } = await execute(compiler, args);
      process.stderr.write(stderr);
      renameSync(fresh, target);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, compileSome));
}

/** The programs that are missing, or older than their source or a header. */
function staleOf({ from, suffix, flags }, folder) {
  const names = readdirSync(join(TEST, from));
  const timeOf = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const headers = names.filter((name) => name.endsWith('.h')).map((name) => join(TEST, from, name));
  return names
    .filter((name) => name.endsWith('.c'))
    .map((name) => ({
      source: join(TEST, from, name),
      target: join(folder, `${basename(name, '.c')}${suffix}`),
      flags,
    }))
    .filter(({ source, target }) =>
      [source, ...headers].some((path) => timeOf(path) >= timeOf(target)),
    );
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await compileTestPrograms();
