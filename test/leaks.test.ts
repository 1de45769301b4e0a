// Lane: patient

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { CGROUP2 } from './support/cgroup2';
import { itAsRecorder, itAsRootIf } from './support/privilege';
import { LineProcess, REPOSITORY } from './support/programs';

interface Report {
  testResults: { name: string; status: string; message: string }[];
}

/** The default is in TMPDIR, which goes with this file. */
const CACHE = join(REPOSITORY, 'build', 'jest-of-leaks');

let folder: string;
let code: number | null;
let report: Report;

/** Runs the files of support/leaks in a Jest of their own. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-leaks-'));
  const output = join(folder, 'report.json');
  const jest = new LineProcess(
    process.execPath,
    [
      join(REPOSITORY, 'node_modules', 'jest', 'bin', 'jest.js'),
      ...['--config', join(REPOSITORY, 'test', 'support', 'leaks', 'jest.config.js')],
      ...['--json', `--outputFile=${output}`, `--cacheDirectory=${CACHE}`],
    ],
    // What they say of themselves is not of our run.
    { cwd: REPOSITORY, env: { ...process.env, EXITWATCH_RESULTS: undefined } },
  );
  code = await jest.ended;
  report = JSON.parse(readFileSync(output, 'utf8')) as Report;
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function resultOf(file: string) {
  const result = report.testResults.find(({ name }) => basename(name) === `${file}.leak.ts`);
  if (result === undefined) throw new Error(`${file} was not run`);
  return result;
}

const itWithCgroup = itAsRootIf(CGROUP2 !== undefined, 'needs cgroup v2');

/** The file, what it says, and who can run it. */
const LEAKS: [string, RegExp, jest.It?][] = [
  ['timer', /this file left a timer: made at .*timer\.leak\.ts:2/],
  ['server', /this file left a handle: a server at .*"127.0.0.1"/],
  ['process', /this file left a process: \d+ sleep 1001/],
  ['orphan', /this file left a process: \d+ sleep 1002/],
  ['socket-file', /this file left a socket: \S+\/left/],
  ['abstract-socket', /this file left a socket: @exitwatch-left-\d+, as descriptor \d+/],
  ['file', /this file left a file: \S+\/left/],
  ['open-file', /this file left an open file: \S+\/open-file\.leak\.ts, as descriptor \d+/],
  ['bpf-object', /this file left a BPF object: (prog|map) \d+, as descriptor \d+/, itAsRecorder],
  ['pin', /this file left a pin: \S+\/exit_program/, itAsRecorder],
  ['cgroup', /this file left a cgroup: \S+\/exitwatch-test-\S+/, itWithCgroup],
];

for (const [file, says, only] of LEAKS) {
  (only ?? it)(`a test that leaves a leak of the kind ${file} fails and says so`, () => {
    const { status, message } = resultOf(file);
    expect(message).toMatch(says);
    expect(status).toBe('failed');
  });
}

it('a test that leaves nothing passes, and that of others is not its own', () => {
  expect(resultOf('nothing')).toMatchObject({ status: 'passed', message: '' });
});

it('a test that has failed is not blamed again', () => {
  const { message } = resultOf('after-failure');
  expect(message).toContain('this is why it fails');
  expect(message).toMatch(/after a failure this file left a process: \d+ sleep 1003/);
});

it('what keeps Jest from ending does not, and the run fails', () => {
  expect(code).toBe(1);
});
