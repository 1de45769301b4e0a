// Lane: patient

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExitwatchError, identify } from '../../src';
import { readPidfile, removePidfile, removeStalePidfile, writePidfile } from '../../src/process';

import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY } from '../support/programs';
import { until } from '../support/wait';

const NOBODY = 65534;

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-pidfile-'));
  chmodSync(folder, 0o755);
  path = join(folder, 'some.pid');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** The error with which readPidfile() rejects. */
async function refusal(): Promise<ExitwatchError> {
  const error: unknown = await readPidfile(path).catch((thrown: unknown) => thrown);
  if (error instanceof ExitwatchError) return error;
  throw new Error(`read as ${JSON.stringify(error)}`);
}

test('a missing pidfile has a code of its own, with ENOENT as the cause', async () => {
  const error = await refusal();
  expect(error).toMatchObject({ code: 'ERR_EXITWATCH_NO_PIDFILE', cause: { code: 'ENOENT' } });
});

const pidMax = readFileSync('/proc/sys/kernel/pid_max', 'latin1').trim();

test.each([
  ['empty', ''],
  ['0', '0'],
  ['-1', '-1'],
  ['above pid_max', String(Number(pidMax) + 1)],
  ['letters', 'pid'],
  ['half-written', '12\u0000\u0000'],
  ['two pids', '12 13'],
  ['binary', '\u007fELF\u0002\u0001\u0001'],
  ['a fraction', '1.5'],
  ['huge', '4'.repeat(1_000_000)],
])('a pidfile that is %s is invalid, and the error quotes it', async (_, content) => {
  writeFileSync(path, content, { mode: 0o600 });
  const error = await refusal();
  expect(error.code).toBe('ERR_EXITWATCH_INVALID_PIDFILE');
  expect(error.message).toContain(JSON.stringify(content.slice(0, 64)));
});

test.each([[' 42\n'], ['42'], ['\t42\r\n'], ['42\n\n'], ['00042\n']])(
  '%j reads as 42',
  async (content) => {
    writeFileSync(path, content, { mode: 0o644 });
    expect(await readPidfile(path)).toEqual({ path, pid: 42, identity: null });
  },
);

test('a folder, a fifo and a symbolic link are refused without blocking', async () => {
  mkdirSync(path);
  expect((await refusal()).code).toBe('ERR_EXITWATCH_INVALID_PIDFILE');
  rmSync(path, { recursive: true });
  execFileSync('mkfifo', [path]);
  expect((await refusal()).code).toBe('ERR_EXITWATCH_INVALID_PIDFILE');
  rmSync(path);
  writeFileSync(join(folder, 'real'), '42');
  symlinkSync('real', path);
  expect((await refusal()).code).toBe('ERR_EXITWATCH_UNTRUSTED_PIDFILE');
});

test('a pidfile that others can write to is not trusted', async () => {
  writeFileSync(path, '42');
  for (const mode of [0o666, 0o602, 0o660]) {
    chmodSync(path, mode);
    expect((await refusal()).code).toBe('ERR_EXITWATCH_UNTRUSTED_PIDFILE');
  }
  chmodSync(path, 0o644);
  expect((await readPidfile(path)).pid).toBe(42);
});

itAsRoot('another user’s pidfile may name only processes of that user', async () => {
  const ours = await mortal();
  writeFileSync(path, String(ours.pid), { mode: 0o644 });
  chownSync(path, NOBODY, NOBODY);
  expect((await refusal()).code).toBe('ERR_EXITWATCH_UNTRUSTED_PIDFILE');
  const theirs = new LineProcess('setpriv', [`--reuid=${NOBODY}`, 'sleep', '1000']);
  const isNobodys = () => statSync(`/proc/${theirs.pid}`).uid === NOBODY;
  await until('setpriv to change its user', isNobodys, theirs.told);
  writeFileSync(path, String(theirs.pid));
  expect((await readPidfile(path)).pid).toBe(theirs.pid);
  theirs.child.kill();
  await release(ours);
});

itAsRoot('an unreadable pidfile rejects with ERR_EXITWATCH_NOT_PERMITTED', () => {
  writeFileSync(path, '42', { mode: 0o600 });
  const script = `
    const { readPidfile } = require(${JSON.stringify(join(REPOSITORY, 'dist/process'))});
    readPidfile(${JSON.stringify(path)}).catch((error) => console.log(error.code));
  `;
  const args = [`--reuid=${NOBODY}`, '--clear-groups', process.execPath, '-e', script];
  expect(execFileSync('setpriv', args, { encoding: 'utf8' })).toBe('ERR_EXITWATCH_NOT_PERMITTED\n');
});

test('a written pidfile holds only digits, which any reader accepts, with the identity in a file beside it', async () => {
  writeFileSync(path, 'something else');
  const written = await writePidfile(path);
  expect(readFileSync(path, 'latin1')).toBe(String(process.pid));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(`${path}.id`).mode & 0o777).toBe(0o600);
  expect(await readPidfile(path)).toEqual(written);
  expect(written.identity).toEqual(identify(process.pid));
  expect(readdirSync(folder).sort()).toEqual(['some.pid', 'some.pid.id']);

  const readers: [string, string[]][] = [
    ['sh', ['-c', `kill -0 $(cat ${path}) && cat ${path}`]],
    ['python3', ['-c', `print(int(open(${JSON.stringify(path)}).read()))`]],
    // strconv.Atoi accepts digits but no white space.
    ['sh', ['-c', `grep -zxE '[0-9]+' ${path}`]],
  ];
  for (const [command, args] of readers) {
    const text = execFileSync(command, args, { encoding: 'latin1' });
    expect(Number(text.replace(/\0/g, ''))).toBe(process.pid);
  }
});

test('a symbolic link is replaced, not followed', async () => {
  const other = join(folder, 'other');
  writeFileSync(other, 'untouched');
  symlinkSync(other, path);
  await writePidfile(path);
  expect(readFileSync(other, 'latin1')).toBe('untouched');
  expect(statSync(path).isFile()).toBe(true);
});

test('an identity file counts only with its own pid, and only if others cannot have written it', async () => {
  await writePidfile(path);
  const child = await mortal();
  writeFileSync(path, String(child.pid));
  expect((await readPidfile(path)).identity).toBeNull();
  await writePidfile(path, child.pid);
  chmodSync(`${path}.id`, 0o666);
  expect((await readPidfile(path)).identity).toBeNull();
  chmodSync(`${path}.id`, 0o600);
  truncateSync(`${path}.id`, 20);
  expect((await readPidfile(path)).identity).toBeNull();
  await release(child);
});

itAsRoot('an identity file that belongs to another user does not count', async () => {
  await writePidfile(path);
  chownSync(`${path}.id`, NOBODY, NOBODY);
  expect((await readPidfile(path)).identity).toBeNull();
  chownSync(`${path}.id`, 0, 0);
  expect((await readPidfile(path)).identity).toEqual(identify(process.pid));
});

test('a stale pidfile is removed, the pidfile of a living process is not', async () => {
  const child = await mortal();
  await writePidfile(path, child.pid);
  expect(await removeStalePidfile(path)).toBe('alive');
  await release(child);
  expect(await removeStalePidfile(path)).toBe('dead');
  expect(readdirSync(folder)).toEqual([]);
  expect(await removeStalePidfile(path)).toBe('missing');
});

test('a pidfile that names another process by now is not removed, and a missing one is no error', async () => {
  const first = await mortal();
  const second = await mortal();
  const { identity } = await writePidfile(path, first.pid);
  await writePidfile(path, second.pid);
  expect(await removePidfile(path, identity ?? undefined)).toBe(false);
  expect(existsSync(path)).toBe(true);
  expect(await removePidfile(path)).toBe(true);
  expect(await removePidfile(path)).toBe(true);
  await Promise.all([release(first), release(second)]);
});

test('while two processes write, a reader always sees a complete file', async () => {
  const script = `
    const { writePidfile } = require(${JSON.stringify(join(REPOSITORY, 'dist/process'))});
    const forever = async () => { for (;;) await writePidfile(${JSON.stringify(path)}); };
    forever();
  `;
  const writers = [0, 1].map(() => new LineProcess(process.execPath, ['-e', script]));
  const identities = new Map(writers.map(({ pid }) => [pid, identify(pid)]));
  const seen = new Set<number>();
  while (!existsSync(path)) await new Promise(setImmediate);
  for (let i = 0; i < 2000 || seen.size < 2; i++) {
    const { pid, identity } = await readPidfile(path);
    expect([...identities.keys()]).toContain(pid);
    if (identity === null) continue; // the identity file was the other's at that moment
    expect(identity).toEqual(identities.get(pid));
    seen.add(pid);
  }
  for (const { child } of writers) child.kill('SIGKILL');
  await Promise.all(writers.map(({ ended }) => ended));
});
