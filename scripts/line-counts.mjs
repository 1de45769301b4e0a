// Which lines of native/ ran, for scripts/test-lines.mjs: by clang's coverage in continuous mode, in
// which the counts are in a mapped file, and so outlive a process that is killed or calls _exit(2).
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const VERSION = 19;
const LARGEST_OUTPUT = 2 ** 30;

/** Throws unless these programs are there. */
export function checkTools() {
  for (const tool of [`clang++-${VERSION}`, `llvm-profdata-${VERSION}`, `llvm-cov-${VERSION}`]) {
    try {
      execFileSync(tool, ['--version'], { stdio: 'ignore' });
    } catch {
      const packages = [`clang-${VERSION}`, `llvm-${VERSION}`, `libclang-rt-${VERSION}-dev`];
      throw new Error(`${tool} is not there; install ${packages.join(', ')}`);
    }
  }
}

/**
 * Writes compilers into a folder, which count what runs of native/ and leave test programs as they are.
 *
 * @param now the folder for the counts. It is compiled in, because tests choose environments.
 * @returns the variables for building with them, and those for tests. These find them in the PATH, because
 *   they would miss no tool that a variable names.
 */
export function countingCompilers(folder, now) {
  // %m: a keeper that becomes another binary keeps its pid.
  const flags = [
    ...[`'-fprofile-instr-generate=${now}/%p-%m%c.profraw'`, '-fcoverage-mapping'],
    ...['-mllvm', '-runtime-counter-relocation', '-Qunused-arguments'],
  ];
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  const compilers = { cc: `clang-${VERSION}`, 'c++': `clang++-${VERSION}` };
  for (const [name, compiler] of Object.entries(compilers)) {
    const script = [
      '#!/bin/sh',
      `case "$*" in *native/*) exec ${compiler} "$@" ${flags.join(' ')} ;; esac`,
      `exec ${compiler} "$@"`,
    ];
    writeFileSync(join(bin, name), `${script.join('\n')}\n`, { mode: 0o755 });
  }
  return {
    forBuild: { CC: join(bin, 'cc'), CXX: join(bin, 'c++') },
    forTests: { PATH: `${bin}:${process.env.PATH}` },
  };
}

/** Programs that tests have compiled since. */
export function countingPrograms(folder, sinceMs) {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => join(folder, name))
    .filter((path) => statSync(path).mtimeMs >= sinceMs)
    .filter((path) => readFileSync(path).includes('__llvm_covmap'));
}

/**
 * The lines of native/ that have code, and those of them that ran.
 *
 * @param folder has the counts
 * @param binaries that may have written them
 */
export function countedLines(root, folder, binaries) {
  const raw = readdirSync(folder)
    .filter((name) => name.endsWith('.profraw'))
    .map((name) => join(folder, name));
  if (raw.length === 0 || binaries.length === 0) return { all: {}, ran: {} };
  const list = join(folder, 'list');
  writeFileSync(list, raw.join('\n'));
  const merged = join(folder, 'merged.profdata');
  // A process may have been killed before its file was complete.
  const merge = ['merge', '--sparse', '--failure-mode=warn', `--input-files=${list}`, '-o', merged];
  execFileSync(`llvm-profdata-${VERSION}`, merge, { stdio: 'ignore' });
  const [first, ...others] = binaries;
  const lcov = execFileSync(
    `llvm-cov-${VERSION}`,
    [
      ...['export', '-format=lcov', '-skip-branches', '-skip-functions'],
      ...[`-instr-profile=${merged}`, first],
      ...others.flatMap((path) => ['-object', path]),
    ],
    { encoding: 'utf8', maxBuffer: LARGEST_OUTPUT, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  return linesOf(lcov, root);
}

/** From lcov's format (geninfo(1)): `SF:` begins a file, `DA:` is a line with its count. */
function linesOf(lcov, root) {
  const all = {};
  const ran = {};
  let file = '';
  for (const line of lcov.split('\n')) {
    if (line.startsWith('SF:')) {
      file = relative(root, line.slice(3));
    } else if (line.startsWith('DA:') && file.startsWith('native/')) {
      const [number, count] = line.slice(3).split(',').map(Number);
      (all[file] ??= []).push(number);
      if (count > 0) (ran[file] ??= []).push(number);
    }
  }
  return { all, ran };
}
