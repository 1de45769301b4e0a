// npm run fuzz [-- --seconds N] [--target NAME]: feeds hostile input to the parsers and to the
// aggregator, each for N seconds. Leaves its findings in build/fuzz. Requires clang with libFuzzer.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';

// Absolute, because a target may go elsewhere.
const TARGETS = resolve('test', 'native', 'fuzz');
const BUILD = resolve('build', 'fuzz');
const LONGEST_INPUT = 4096;

const execute = promisify(execFile);

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, target: { type: 'string' } },
});

const compiler = [process.env.CLANGXX, 'clang++-19', 'clang++'].find(
  (name) => name !== undefined && spawnSync(name, ['--version']).status === 0,
);
if (compiler === undefined) {
  console.error(
    'fuzzing requires clang++ with libFuzzer (Debian: clang-19 and libclang-rt-19-dev)',
  );
  process.exit(1);
}
const filesIn = (folder, pattern) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => pattern.test(name))
    .map((name) => join(folder, name));
const SANITIZERS = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'];

/** All of native/core, which every target in C++ is linked with. */
async function compileCore() {
  const folder = join(BUILD, 'core');
  mkdirSync(folder, { recursive: true });
  const left = filesIn(join('native', 'core'), /\.cc$/).map((file) => ({
    file,
    object: join(folder, `${file.replaceAll('/', '-')}.o`),
  }));
  const objects = left.map(({ object }) => object);
  const compileSome = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const flags = ['-std=c++17', '-Inative', '-fsanitize=fuzzer-no-link', ...SANITIZERS];
      await execute(compiler, [...flags, '-c', next.file, '-o', next.object]);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, compileSome));
  return objects;
}

/** What creates processes, signals them, and becomes another program stays out. */
const KEEPER = [
  ...['-xc', '-std=c11', '-D_GNU_SOURCE', '-DKEEPER_VERSION="fuzz"', '-Inative/keeper'],
  ...filesIn(join('native', 'keeper'), /(clock|journal|notify|past|runs|server|text)\.c$/),
];
const core = await compileCore();
for (const file of readdirSync(TARGETS).filter((name) => /_fuzz\.cc?$/.test(name))) {
  const name = basename(file).replace(/_fuzz\.cc?$/, '');
  if (values.target !== undefined && values.target !== name) continue;
  const corpus = join(BUILD, `${name}-corpus`);
  mkdirSync(corpus, { recursive: true });
  const program = join(BUILD, name);
  execFileSync(
    compiler,
    [
      ...[...SANITIZERS, '-fsanitize=fuzzer', `-I${join('test', 'native')}`, '-o', program],
      ...(file.endsWith('.c') ? KEEPER : ['-std=c++17', '-Inative', ...core]),
      join(TARGETS, file),
    ],
    { stdio: 'inherit' },
  );
  const args = [
    corpus,
    join(TARGETS, 'seeds', name),
    `-max_total_time=${values.seconds}`,
    `-max_len=${LONGEST_INPUT}`,
  ];
  const { status, stderr } = spawnSync(
    program,
    [...args, '-print_final_stats=1', `-artifact_prefix=${BUILD}/${name}-`],
    { encoding: 'latin1', maxBuffer: 1024 ** 3 },
  );
  if (status !== 0) console.error(stderr.split('\n').slice(-60).join('\n'));
  const inputs = /^stat::number_of_executed_units: (\d+)$/m.exec(stderr)?.[1] ?? 'few';
  console.log(`${name}: ${inputs} inputs, ${status === 0 ? 'no errors' : 'ERROR FOUND'}`);
  if (status !== 0) process.exit(1);
}
