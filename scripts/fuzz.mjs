// npm run fuzz [-- --seconds N] [--target NAME]: feeds hostile input to the parsers and to the
// aggregator, each for N seconds. Leaves its findings in build/fuzz. Requires clang with libFuzzer.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

const TARGETS = join('test', 'native', 'fuzz');
const BUILD = join('build', 'fuzz');
const LONGEST_INPUT = 4096;

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
const core = join('native', 'core');
const sources = readdirSync(core, { recursive: true }).filter((name) => name.endsWith('.cc'));
for (const file of readdirSync(TARGETS).filter((name) => name.endsWith('_fuzz.cc'))) {
  const name = basename(file, '_fuzz.cc');
  if (values.target !== undefined && values.target !== name) continue;
  const corpus = join(BUILD, `${name}-corpus`);
  mkdirSync(corpus, { recursive: true });
  const program = join(BUILD, name);
  execFileSync(
    compiler,
    [
      ...['-std=c++17', '-O1', '-g', '-fsanitize=fuzzer,address,undefined'],
      ...['-fno-sanitize-recover=all', '-Inative', `-I${join('test', 'native')}`],
      ...[join(TARGETS, file), ...sources.map((source) => join(core, source)), '-o', program],
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
