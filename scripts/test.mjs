// npm test: runs the tests that cover every feature once. Tests say in their first line in which lane they
// run (scripts/lanes.mjs): what waits runs in several workers of one Jest, storms run beside it one at a
// time, and last what must be alone. `npm test -- PATTERN…` runs what matches, one file at a time.
//
// `test.mjs --set SET [--without SET]` runs another set of files in the same way: see test-sets.mjs. All
// failures are told again at the end.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { testFiles } from './lanes.mjs';
import { compileTestPrograms } from './test-programs.mjs';
import { SETS } from './test-sets.mjs';

const JEST = join('node_modules', 'jest', 'bin', 'jest.js');
const FILTER = resolve('test', 'support', 'filter.cjs');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    set: { type: 'string', default: 'default' },
    without: { type: 'string' },
    workers: { type: 'string', default: String(3 * availableParallelism()) },
  },
});
const results = resolve('build', 'tests', `${values.set}.jsonl`);
mkdirSync(join('build', 'tests'), { recursive: true });
rmSync(results, { force: true });

const isLeftOut = SETS[values.without] ?? (() => false);
await compileTestPrograms(); // before several runs of Jest would
const files = testFiles().filter(({ path }) => SETS[values.set](path) && !isLeftOut(path));
const of = (...lanes) => files.filter(({ lane }) => lanes.includes(lane));
let codes;
if (positionals.length > 0) {
  codes = [await run(files.filter(({ path }) => positionals.some((word) => path.includes(word))))];
} else {
  codes = await Promise.all([run(of('unit', 'patient'), values.workers), run(of('storm'))]);
  codes.push(await run(of('alone')));
}
tellFailures();
process.exit(Math.max(...codes));

/** Resolves with Jest's exit code. */
function run(lane, workers = '1') {
  if (lane.length === 0) return 0;
  const args = [JEST, '--maxWorkers', workers, '--filter', FILTER];
  const paths = lane.map(({ path }) => resolve(path)).join('\n');
  const env = { ...process.env, EXITWATCH_FILES: paths, EXITWATCH_RESULTS: results };
  const child = spawn(process.execPath, args, { stdio: 'inherit', env });
  return new Promise((done) => child.once('close', (code) => done(code ?? 1)));
}

function tellFailures() {
  const lines = existsSync(results) ? readFileSync(results, 'utf8').trim().split('\n') : [];
  const failed = lines.map((line) => JSON.parse(line)).filter(({ failed }) => failed > 0);
  for (const { message } of failed) console.error(`\n${message.trim()}`);
  if (failed.length > 0) console.error('\nTo repeat what failed:');
  for (const { path } of failed) console.error(`  npx jest ${path}`);
}
