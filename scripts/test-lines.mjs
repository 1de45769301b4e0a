// npm run test:lines [-- --workers N] [PATTERN…]: which lines of src/ and native/ each test file runs, and which
// only that file runs. PATTERN is part of a test file's path; without one, all run, which takes more than
// an hour. Runs the last commit in a clone in build/lines, and writes build/lines/map.json; with N workers, in as
// many clones. What a run has found is kept by commit: after an interruption, call it again. A test file that fails is
// in the map, too; the table says what has failed. Requires clang 19 and llvm 19.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { checkTools, countedLines, countingCompilers, countingPrograms } from './line-counts.mjs';
import { compileWithProbes } from './line-probes.mjs';
import { runTestFile } from './run-test-file.mjs';

/** A test file that takes longer hangs. */
const LONGEST_MS = 20 * 60_000;

/** The probes are in dist. */
const DIST_FOR_SRC = {
  '^(?:\\.\\./)+src$': '<rootDir>/dist',
  '^(?:\\.\\./)+src/(.*?)(?:\\.js)?$': '<rootDir>/dist/$1',
};

const MAP = join('build', 'lines', 'map.json');
const ADDON = 'build/Release/exitwatch.node';
const KEEPER = 'build/Release/exitwatch-keeper';

const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim();

const commit = git('rev-parse', '--short', 'HEAD');
/** Other clones do not know the commit, but may have the same folders. */
const folders = { src: git('rev-parse', 'HEAD:src'), native: git('rev-parse', 'HEAD:native') };
const { values, positionals: patterns } = parseArgs({
  allowPositionals: true,
  options: {
    workers: { type: 'string', default: '1' },
    // Which of the workers this is, from 0.
    worker: { type: 'string' },
  },
});
const workers = Number(values.workers);
if (!Number.isInteger(workers) || workers < 1) throw new Error('--workers must be a number');
const worker = values.worker === undefined ? undefined : Number(values.worker);
const results = resolve('build', 'lines', commit, 'results');
const folder = resolve('build', 'lines', commit, `worker-${worker ?? 0}`);
const tree = join(folder, 'tree');
/** A link to the folder for what the test file that runs leaves. */
const now = join(folder, 'now');
const linesFile = join(folder, 'lines.json');

checkTools();
mkdirSync(results, { recursive: true });
const compilers = countingCompilers(folder, now);
const others = worker === undefined ? runOthers() : undefined;
if (!existsSync(linesFile) || !binaries().every(existsSync)) build();
const product = JSON.parse(readFileSync(linesFile, 'utf8'));

const all = git('ls-files', 'test/*.test.ts').split('\n');
const wanted = all.filter(
  (test) => patterns.length === 0 || patterns.some((pattern) => test.includes(pattern)),
);
for (const [i, test] of wanted.entries()) {
  if (existsSync(resultFile(test)) || i % workers !== (worker ?? 0)) continue;
  const result = await runTest(test);
  writeWhole(resultFile(test), JSON.stringify(result));
  const { wallSeconds, failed } = result;
  const outcome = failed.length === 0 ? '' : `; failed: ${failed.join(' | ')}`;
  console.log(`${i + 1} of ${wanted.length}: ${test}, ${wallSeconds} s${outcome}`);
  if (worker === undefined) writeMap(known());
  // Those of the README build, and do not count.
  if (!binaries().every(existsSync)) build();
}
await others;
if (worker === undefined) {
  const found = known();
  writeMap(found);
  printTable(found);
  if (found.length < all.length) console.log(`${all.length - found.length} test files did not run`);
}

/** The workers but the first one, which this process is. Each builds, because the paths are in the binaries. */
function runOthers() {
  const run = (number) =>
    new Promise((done) => {
      const args = [process.argv[1], '--workers', values.workers, '--worker', number, ...patterns];
      spawn(process.execPath, args, { stdio: 'inherit' }).once('close', done);
    });
  return Promise.all(Array.from({ length: workers - 1 }, (_, i) => run(String(i + 1))));
}

function build() {
  console.log(`building ${commit} in ${tree}`);
  rmSync(tree, { recursive: true, force: true });
  execFileSync('git', ['clone', '--quiet', process.cwd(), tree]);
  symlinkSync(resolve('node_modules'), join(tree, 'node_modules'));
  const probes = compileWithProbes(tree, resolve('scripts', 'line-recorder.cjs'), now);
  const raw = newRaw('build');
  const run = (...args) =>
    execFileSync(process.execPath, args, {
      cwd: tree,
      stdio: 'inherit',
      env: { ...process.env, ...compilers.forBuild },
    });
  run('scripts/build-addon.mjs');
  run('scripts/build-keeper.mjs');
  run('-p', `require('./${ADDON}'); 'the addon counts'`);
  spawnSync(join(tree, KEEPER), { stdio: 'ignore' });
  const { all: native } = countedLines(tree, raw, binaries());
  for (const binary of ['native/keeper/main.c', 'native/napi/addon.cc']) {
    if (native[binary] === undefined) throw new Error(`nothing counts the lines of ${binary}`);
  }
  rmSync(raw, { recursive: true });
  writeWhole(linesFile, JSON.stringify({ probes, native }));
}

function binaries() {
  return [join(tree, ADDON), join(tree, KEEPER)];
}

/** Processes of any user write here. */
function newRaw(name) {
  const raw = join(folder, 'raw', name);
  rmSync(raw, { recursive: true, force: true });
  mkdirSync(raw, { recursive: true });
  chmodSync(raw, 0o777);
  writeFileSync(join(raw, 'hits'), '');
  chmodSync(join(raw, 'hits'), 0o666);
  rmSync(`${now}.new`, { force: true });
  symlinkSync(raw, `${now}.new`);
  renameSync(`${now}.new`, now);
  return raw;
}

function nameOf(test) {
  return test.replace(/^test\/|\.test\.ts$/g, '').replaceAll('/', '-');
}

function resultFile(test) {
  return join(results, `${nameOf(test)}.json`);
}

async function runTest(test) {
  const raw = newRaw(nameOf(test));
  const began = Date.now();
  const { cpuSeconds, wallSeconds, failed } = await runTestFile(tree, test, {
    moduleNameMapper: DIST_FOR_SRC,
    env: compilers.forTests,
    longestMs: LONGEST_MS,
  });
  const programs = countingPrograms(join(tree, 'build', 'test-programs'), began);
  const { ran } = countedLines(tree, raw, [...binaries().filter(existsSync), ...programs]);
  const lines = { ...linesOfHits(join(raw, 'hits')), ...ran };
  rmSync(raw, { recursive: true });
  return { test, wallSeconds, cpuSeconds, failed, lines };
}

function linesOfHits(file) {
  const hits = new Set(readFileSync(file, 'utf8').split('\n').map(Number));
  const ran = {};
  for (const [name, lines] of Object.entries(product.probes)) {
    const own = Object.entries(lines).filter(([, probes]) => probes.some((id) => hits.has(id)));
    if (own.length > 0) ran[name] = own.map(([line]) => Number(line));
  }
  return ran;
}

/** What this run and earlier ones have found. */
function known() {
  return all
    .map(resultFile)
    .filter(existsSync)
    .map((file) => JSON.parse(readFileSync(file, 'utf8')));
}

/** Of each line of each file, the test files that run it. */
function filesOf(found) {
  const files = {};
  const probed = Object.entries(product.probes).map(([name, lines]) => [name, Object.keys(lines)]);
  for (const [name, lines] of [...probed, ...Object.entries(product.native)]) {
    files[name] = Object.fromEntries(lines.map((line) => [line, []]));
  }
  for (const [i, { lines }] of found.entries()) {
    for (const [name, numbers] of Object.entries(lines)) {
      for (const line of numbers) files[name]?.[line]?.push(i);
    }
  }
  return files;
}

function writeMap(found) {
  const seconds = found.map(({ cpuSeconds, wallSeconds }) => ({ cpuSeconds, wallSeconds }));
  const tests = found.map(({ test }) => test);
  writeWhole(MAP, JSON.stringify({ commit, folders, files: filesOf(found), tests, seconds }));
}

function printTable(found) {
  const lines = Object.values(filesOf(found)).flatMap((file) => Object.values(file));
  const count = found.map(() => 0);
  const only = found.map(() => 0);
  for (const own of lines) {
    for (const i of own) count[i]++;
    if (own.length === 1) only[own[0]]++;
  }
  const row = (cells) => console.log(cells.map((cell) => String(cell).padStart(8)).join(''));
  row(['lines', 'only', 'CPU s', 'wall s', '  test file']);
  for (const [i, { cpuSeconds, wallSeconds, test, failed }] of found.entries()) {
    const outcome = failed.length === 0 ? '' : ` (${failed.length} failed)`;
    row([count[i], only[i], cpuSeconds, wallSeconds, `  ${test}${outcome}`]);
  }
  for (const { test, failed } of found) {
    for (const name of failed) console.log(`failed: ${test}: ${name}`);
  }
  const ran = lines.filter((own) => own.length > 0).length;
  console.log(
    `${MAP}: ${found.length} test files run ${ran} of ${lines.length} lines of ${commit}`,
  );
}

/** An interruption leaves no half of it. */
function writeWhole(path, text) {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
