// npm test: runs the tests that cover every feature once, in three runs of Jest side by side. Tests of
// events share one run, because they end thousands of processes; commands, virtual machines and the
// supervisor mostly wait. `npm test -- PATTERN…` runs what matches, in a single run.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const JEST = 'node_modules/jest/bin/jest.js';

/** Absolute, because Jest's patterns match anywhere in a path, and a clone may be anywhere. */
const pattern = (path) => join(process.cwd(), path).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** What `npm test` leaves to other scripts. Of the soak tests it runs those of the ways to end. */
const OTHERS = [
  ...['test/e2e/', 'test/package/'].map(pattern),
  `${pattern('test/soak/')}(?!(?:deaths|senders)\\.)`,
];

const COMMANDS = ['test/cli/', 'test/docs/', 'test/process/', 'test/vm/'].map(pattern);
const SUPERVISOR = ['test/supervise/', 'test/supervisor/'].map(pattern);

/** They make the kernel reuse pids at once, which confuses other tests that name a process by its pid. */
const ALONE = [
  'test/identity/pid-reuse',
  'test/monitor/exit-monitor',
  'test/supervisor/lost-shims',
].map(pattern);

const ignore = (patterns) => patterns.flatMap((each) => ['--testPathIgnorePatterns', each]);

const args = process.argv.slice(2);
if (args.length > 0) {
  process.exit(await run([...args, ...ignore(OTHERS)]));
}
const codes = await Promise.all([
  run(COMMANDS),
  run([...SUPERVISOR, ...ignore(ALONE)]),
  run(ignore([...OTHERS, ...COMMANDS, ...SUPERVISOR, ...ALONE])),
]);
process.exit(Math.max(...codes, await run(ALONE)));

/** Resolves with its exit code. */
function run(jestArgs) {
  const child = spawn(process.execPath, [JEST, ...jestArgs], { stdio: 'inherit' });
  return new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)));
}
