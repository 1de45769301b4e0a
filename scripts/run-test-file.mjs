// Runs one test file in a process of its own, for scripts that run many of them in a clone.
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(import.meta.url);

/** With these, the next run need not compile the test programs. */
const COMPILED = join('build', 'test-programs', '.are-compiled');

/**
 * @param tree the clone
 * @param moduleNameMapper more than the clone's own
 * @param isEnough the first failed test is: those after it are skipped
 * @returns `failed` is empty if all have passed; the CPU time is without that of processes that nobody has waited for, such as a keeper
 */
export async function runTestFile(
  tree,
  test,
  { moduleNameMapper = {}, env = {}, longestMs, isEnough = false, testName },
) {
  const folder = mkdtempSync(join(tmpdir(), 'ew-test-file-'));
  const [config, output, times] = ['config.json', 'report.json', 'times'].map((name) =>
    join(folder, name),
  );
  writeFileSync(config, JSON.stringify(configOf(tree, { moduleNameMapper, isEnough })));
  const args = [
    ...['--config', config, '--json', `--outputFile=${output}`],
    ...(testName === undefined ? [] : ['--testNamePattern', exactly(testName)]),
    ...['--runTestsByPath', join(tree, test)],
  ];
  try {
    const began = Date.now();
    const jest = [process.execPath, join(tree, 'node_modules', 'jest', 'bin', 'jest.js'), ...args];
    const { isHung } = await ended(
      ['sh', '-c', 'times=$1; shift; "$@"; times >"$times"', 'sh', times, ...jest],
      { cwd: tree, env: { ...process.env, ...env }, longestMs },
    );
    const wallSeconds = Math.round((Date.now() - began) / 100) / 10;
    const hasResult = !isHung && existsSync(output);
    if (hasResult) writeFileSync(join(tree, COMPILED), '');
    return {
      wallSeconds,
      cpuSeconds: hasResult ? cpuSeconds(readFileSync(times, 'utf8')) : wallSeconds,
      isHung,
      ...(hasResult
        ? failures(readFileSync(output, 'utf8'))
        : { tests: [], failed: ['no result'] }),
    };
  } finally {
    endLeftOver(tree);
    rmSync(folder, { recursive: true, force: true });
  }
}

function configOf(tree, { moduleNameMapper: more, isEnough }) {
  const path = join(tree, 'jest.config.js');
  const { globalSetup, moduleNameMapper, ...config } = require(path);
  return {
    ...config,
    rootDir: tree,
    // See test/support/environment.ts. Jest's own `bail` ends without a report.
    testEnvironmentOptions: { isFirstFailureEnough: isEnough },
    moduleNameMapper: { ...more, ...moduleNameMapper },
    ...(existsSync(join(tree, COMPILED)) ? {} : { globalSetup }),
  };
}

function exactly(name) {
  return `^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
}

/** In a process group, so that what hangs ends with all that it has started. */
async function ended([command, ...args], { longestMs, ...options }) {
  const child = spawn(command, args, { ...options, stdio: 'ignore', detached: true });
  let isHung = false;
  const end = () => process.kill(-child.pid, 'SIGKILL');
  const timer = setTimeout(() => {
    isHung = true;
    end();
  }, longestMs);
  const interrupted = (signal) => {
    end();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, interrupted);
  await new Promise((resolve) => child.once('close', resolve));
  for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, interrupted);
  clearTimeout(timer);
  return { isHung };
}

/** Of the children, which times(1p) has in its second line: `1m2.34s 0m5.67s`. */
function cpuSeconds(times) {
  const all = [...(times.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  const sum = all.reduce((seconds, [, minutes, rest]) => seconds + minutes * 60 + Number(rest), 0);
  return Math.round(sum * 10) / 10;
}

/** The tests that failed. `failed` also has what else did, such as a file that cannot be loaded. */
function failures(output) {
  const { testResults } = JSON.parse(output);
  const tests = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
    .map(({ fullName }) => fullName);
  const files = testResults
    .filter(({ status }) => status === 'failed')
    .map(({ message }) => message.trim().split('\n')[0]);
  return { tests, failed: tests.length > 0 ? tests : files };
}

/**
 * Ends what a test has left in other process groups, which would disturb the next one: programs of the
 * clone, and Node.js with a script of the clone.
 */
function endLeftOver(tree) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const program = readlinkSync(`/proc/${pid}/exe`);
      const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      const files = program === process.execPath ? args : [program];
      if (files.some((file) => file.startsWith(`${tree}/`))) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}
