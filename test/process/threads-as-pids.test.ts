// Lane: patient

import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify, waitForExit } from '../../src';
import {
  exists,
  isAlive,
  kill,
  readPidfile,
  removePidfile,
  removeStalePidfile,
  stop,
  terminate,
  writePidfile,
} from '../../src/process';
import { VmControl } from '../../src/vm';
import { ownerOf } from '../../src/vm/directory/vm-owner';
import type { ControlFiles } from '../../src/vm/directory/control-files';

import { call, callWith, MAIN } from '../support/command';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';

let folder: string;
let pidfile: string;
let stranger: LineProcess;
let thread: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-threads-'));
  chmodSync(folder, 0o755);
  pidfile = join(folder, 'some.pid');
  stranger = await mortal('--stranger', '--thread');
  thread = Number(await stranger.line());
  writeFileSync(pidfile, String(thread), { mode: 0o644 });
});

afterEach(async () => {
  // It exits with 66 if any signal reaches it.
  expect(await release(stranger)).toBe(0);
  expect(existsSync(pidfile)).toBe(true);
  rmSync(folder, { recursive: true });
});

const isAThread = () => ({
  code: 'ERR_EXITWATCH_THREAD',
  message: `${thread} is a thread of process ${stranger.pid} (mortal); use pid ${stranger.pid} if you mean that process`,
});

test('the id of a thread is not a process, and not dead', async () => {
  expect(identify(thread)).toBeNull();
  expect(isAlive(thread)).toBe('unknown');
  expect(exists({ pid: thread, executable: 'mortal' })).toBe('unknown');
  const target = { pid: thread, executable: 'mortal' };
  const acts = [
    ...[stop(thread, { pidfile }), stop(target, { pidfile })],
    stop(thread, { tree: true, pidfile }),
    ...[terminate(thread), terminate(target), kill(thread), kill(target)],
    ...[waitForExit(thread), writePidfile(join(folder, 'other.pid'), thread)],
  ];
  for (const result of await Promise.allSettled(acts)) {
    expect(result).toMatchObject({ status: 'rejected', reason: isAThread() });
  }
});

test('a pidfile with the id of a thread is not stale', async () => {
  expect(await readPidfile(pidfile)).toMatchObject({ pid: thread, identity: null });
  expect(await removeStalePidfile(pidfile)).toBe('unknown');
  const vm = new VmControl({ process: { pidfile, executable: 'mortal' } });
  expect(await vm.state()).toMatchObject({ state: 'unknown', warnings: [isAThread().message] });
  await expect(vm.stop()).rejects.toMatchObject(isAThread());
  // The machine with these files has not ended, either.
  const files = { pidfile, qmp: null } as ControlFiles;
  expect(await ownerOf(files)).toMatchObject({ state: 'unknown', error: isAThread() });
});

test('a pidfile with only a pid stays if that is the id of a thread by now', async () => {
  const ended = await mortal();
  const identity = identify(ended.pid);
  if (identity === null) throw new Error('it ended');
  await release(ended);
  const before = { ...identity, pid: thread, id: identity.id.replace(/-\d+-/, `-${thread}-`) };
  expect(isAlive(before)).toBe('dead');
  expect(await removePidfile(pidfile, before)).toBe(false);
  expect(await stop(before, { pidfile })).toMatchObject({
    outcome: 'already-gone',
    warnings: [{ code: 'pidfile-not-removed' }],
  });
  // With an identity beside it, the pidfile names the ended process.
  const ours = join(folder, 'ours.pid');
  await writePidfile(ours, before);
  expect(await removeStalePidfile(ours)).toBe('dead');
  expect(existsSync(ours)).toBe(false);
});

test('the commands say which process a thread belongs to', async () => {
  const says = `${thread} is a thread of process ${stranger.pid} (mortal)`;
  for (const what of [String(thread), pidfile]) {
    expect(await call('alive', what)).toMatchObject({
      code: 125,
      lines: ['unknown'],
      stderr: expect.stringContaining(says) as string,
    });
    for (const more of [[], ['--executable', 'mortal'], ['--tree']]) {
      const { code, lines, stderr } = await call('stop', what, ...more);
      expect({ code, lines }).toEqual({ code: 125, lines: [] });
      expect(stderr).toContain(says);
    }
  }
  const { code, lines, stderr } = await call('wait', String(thread));
  expect({ code, lines }).toEqual({ code: 125, lines: [] });
  expect(stderr).toContain(says);
  const json = await call('alive', pidfile, '--json');
  expect(JSON.parse(json.lines[0] ?? '')).toMatchObject({
    liveness: 'unknown',
    why: isAThread().message,
  });
});

itAsRoot('a kernel thread is not dead, and is not stopped', async () => {
  const isKernelThread = { code: 'ERR_EXITWATCH_KERNEL_THREAD' };
  expect(isAlive(2)).toBe('unknown');
  expect(exists({ pid: 2, executable: 'kthreadd' })).toBe(false);
  for (const act of [stop(2), stop(2, { tree: true }), terminate(2), kill(2)]) {
    await expect(act).rejects.toMatchObject(isKernelThread);
  }
  const names = join(folder, 'kernel.pid');
  writeFileSync(names, '2');
  await expect(stop({ pid: 2, executable: 'kthreadd' })).rejects.toMatchObject(isKernelThread);
  expect(await removeStalePidfile(names)).toBe('unknown');
  for (const args of [
    ['stop', '2'],
    ['stop', names],
    ['alive', names],
  ]) {
    const { code, stderr } = await call(...args);
    expect(code).toBe(125);
    expect(stderr).toContain('pid 2 is a kernel thread (kthreadd), not a process');
  }
  expect(existsSync(names)).toBe(true);
});

/** Ways to hide information. The command under each of them sees the same pids. */
const BLINDFOLDS: [string, () => readonly string[]][] = [
  ['without pidfds', () => [program('without'), 'pidfd_open', 'errno']],
  ['without /proc', () => ['unshare', '-m', 'sh', '-c', 'umount -l /proc; exec "$@"', 'sh']],
  [
    'without pidfds and /proc',
    () => [
      ...['unshare', '-m', 'sh', '-c', 'umount -l /proc; exec "$@"', 'sh'],
      ...[program('without'), 'pidfd_open', 'errno'],
    ],
  ],
  [
    'as another user from whom /proc hides it',
    () => [
      ...['unshare', '-m', 'sh', '-c', 'mount -t proc -o hidepid=2 proc /proc; exec "$@"', 'sh'],
      ...['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'],
    ],
  ],
];

for (const [how, blindfold] of BLINDFOLDS) {
  itAsRoot(`a thread is not dead ${how}`, async () => {
    for (const what of [String(thread), pidfile]) {
      const alive = await callWith(blindfold(), 'alive', what);
      expect(alive.code).toBe(125);
      const stopped = await callWith(blindfold(), 'stop', what);
      expect(stopped).toMatchObject({ code: 125, lines: [] });
    }
  });
}

test('a thread is not dead without the addon', async () => {
  // As on a machine for which there is no binary, where exitwatch polls.
  const script = `
    const Module = require('node:module');
    const load = Module._load;
    const none = () => { throw new Error('no binary'); };
    Module._load = (name, ...rest) => (name === 'bindings' ? none : load(name, ...rest));
    const { addonRefusal } = require(${JSON.stringify(join(REPOSITORY, 'dist/native/load-addon.js'))});
    const { isAlive, removeStalePidfile, stop } = require(${JSON.stringify(join(REPOSITORY, 'dist/process'))});
    const tell = async () => console.log(
      addonRefusal() !== null,
      isAlive(${thread}),
      await removeStalePidfile(${JSON.stringify(pidfile)}),
      await stop(${thread}).catch(({ code }) => code),
      isAlive(${stranger.pid}),
    );
    tell();
  `;
  const { stdout } = await run(process.execPath, ['-e', script]);
  expect(stdout.trim()).toBe('true unknown unknown ERR_EXITWATCH_THREAD alive');
});

itAsRoot('a thread is not dead in another pid namespace', async () => {
  const script = `
    rm -f ${folder}/out
    tail -f /dev/null | ${program('mortal')} --stranger --thread > ${folder}/out &
    until [ -e ${folder}/out ] && [ "$(wc -l < ${folder}/out)" -eq 2 ]; do sleep 0.05; done
    T=$(tail -n 1 ${folder}/out)
    ${process.execPath} ${MAIN} alive $T; echo $?
    ${process.execPath} ${MAIN} stop $T; echo $?
    kill -0 $! && echo there
  `;
  for (const mount of [['--mount-proc'], []]) {
    // The shell is the first process there, so all others end with it.
    const { stdout } = await run('unshare', ['-pf', ...mount, 'sh', '-c', script]);
    expect(stdout.trim().split('\n')).toEqual(['unknown', '125', '125', 'there']);
  }
});
