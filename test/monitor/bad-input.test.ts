// Lane: patient

import { readdirSync } from 'node:fs';

import { decodeWaitStatus, ExitMonitor, ExitwatchError, identify } from '../../src';

import { LineProcess } from '../support/programs';
import { arrives } from '../support/wait';

/** The code of the error that a call throws or rejects with. */
async function codeOf(call: () => unknown): Promise<string | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return error instanceof ExitwatchError ? error.code : String(error);
  }
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

const INVALID_PIDS: unknown[] = [
  -1,
  0,
  1.5,
  NaN,
  Infinity,
  '1',
  undefined,
  true,
  4_194_305,
  2 ** 40,
];

test.each(INVALID_PIDS)('rejects the pid %p', async (pid) => {
  const before = openDescriptors();
  const monitor = new ExitMonitor();
  expect(await codeOf(() => identify(pid as number))).toBe('ERR_EXITWATCH_INVALID_PID');
  expect(await codeOf(() => monitor.watch(pid as number))).toBe('ERR_EXITWATCH_INVALID_PID');
  await monitor.close();
  expect(openDescriptors()).toBe(before);
});

test('rejects a pid beyond kernel.pid_max that no process has', async () => {
  await using monitor = new ExitMonitor();
  expect(await codeOf(() => monitor.watch(4_194_303))).toBe('ERR_EXITWATCH_INVALID_PID');
});

test('rejects the pid of no process, of a kernel thread, of a thread and of this process', async () => {
  await using monitor = new ExitMonitor();
  const gone = new LineProcess('true', []);
  await gone.ended;
  expect(await codeOf(() => monitor.watch(gone.pid))).toBe('ERR_EXITWATCH_NO_SUCH_PROCESS');
  expect(identify(gone.pid)).toBeNull();
  expect(await codeOf(() => monitor.watch(2))).toBe('ERR_EXITWATCH_KERNEL_THREAD');
  expect(identify(2)).toBeNull();
  const tasks = readdirSync('/proc/self/task').map(Number);
  const thread = tasks.find((tid) => tid !== process.pid) ?? 0;
  expect(await codeOf(() => monitor.watch(thread))).toBe('ERR_EXITWATCH_THREAD');
  expect(identify(thread)).toBeNull();
  expect(await codeOf(() => monitor.watch(process.pid))).toBe('ERR_EXITWATCH_INVALID_PID');
  const ourselves = identify(process.pid);
  expect(ourselves).not.toBeNull();
  if (ourselves !== null) {
    expect(await codeOf(() => monitor.watch(ourselves))).toBe('ERR_EXITWATCH_INVALID_PID');
  }
});

const identity = identify(process.ppid);
const INVALID_IDENTITIES: unknown[] = [
  null,
  {},
  [],
  { ...identity, pid: 0 },
  { ...identity, pid: '1' },
  { ...identity, startTicks: -1 },
  { ...identity, bootId: 7 },
  { ...identity, inode: 0.5 },
  { ...identity, id: 'another' },
];

test.each(INVALID_IDENTITIES)('rejects the identity %j', async (target) => {
  await using monitor = new ExitMonitor();
  expect(await codeOf(() => monitor.watch(target as number))).toBe(
    'ERR_EXITWATCH_INVALID_IDENTITY',
  );
});

const INVALID_OPTIONS: unknown[] = [
  null,
  7,
  { scope: 'some' },
  { scope: null },
  { source: 'pidfd', scope: 'all' },
  { statusTimeoutMs: -1 },
  { trace: 'maybe' },
  { trace: 'on', source: 'poll' },
  { receiveBufferBytes: 0 },
  { receiveBufferBytes: 2 ** 31 },
  { receiveBufferBytes: '8192' },
  { queueLimit: 0 },
  { queueLimit: 1.5 },
  { signal: {} },
  { pollIntervalMs: 0 },
  { verbose: true },
];

test.each(INVALID_OPTIONS)('rejects the options %j', async (options) => {
  const before = openDescriptors();
  expect(await codeOf(() => new ExitMonitor(options as object))).toBe(
    'ERR_EXITWATCH_INVALID_OPTION',
  );
  expect(openDescriptors()).toBe(before);
});

test('a monitor cannot be started twice, nor used after close()', async () => {
  const before = openDescriptors();
  const monitor = new ExitMonitor();
  const first = monitor.start();
  expect(await codeOf(() => monitor.start())).toBe('ERR_EXITWATCH_ALREADY_STARTED');
  await arrives('the monitor to start', first);
  expect(await codeOf(() => monitor.start())).toBe('ERR_EXITWATCH_ALREADY_STARTED');
  await monitor.close();
  await monitor.close();
  expect(await codeOf(() => monitor.start())).toBe('ERR_EXITWATCH_CLOSED');
  expect(await codeOf(() => monitor.watch(process.ppid))).toBe('ERR_EXITWATCH_CLOSED');
  expect(monitor.stats()).toMatchObject({ healthy: false, watches: 0 });
  expect(monitor.ref().unref()).toBe(monitor);
  expect(openDescriptors()).toBe(before);
});

test('close() during the start rejects start() and leaves nothing open', async () => {
  const before = openDescriptors();
  const monitor = new ExitMonitor({ scope: 'all' });
  const starting = monitor.start();
  await monitor.close();
  expect(await codeOf(() => starting)).toBe('ERR_EXITWATCH_CLOSED');
  expect(openDescriptors()).toBe(before);
});

test.each([-1, 0.5, 0x7f, 0x137f, 0xffff, 0x10000, 0x0101, '0', null])(
  'rejects the wait status %p',
  async (status) => {
    expect(await codeOf(() => decodeWaitStatus(status as number))).toBe(
      'ERR_EXITWATCH_INVALID_WAIT_STATUS',
    );
  },
);

test('a call that fails leaves no watch behind', async () => {
  await using monitor = new ExitMonitor();
  const before = openDescriptors();
  for (const pid of [0, -1, 4_194_303]) {
    await codeOf(() => monitor.watch(pid));
  }
  expect(monitor.stats().watches).toBe(0);
  expect(openDescriptors()).toBe(before);
});

test('rejects an unknown EXITWATCH_FILTER', async () => {
  process.env['EXITWATCH_FILTER'] = 'clasic';
  try {
    const monitor = new ExitMonitor();
    expect(await codeOf(() => monitor.watch(process.ppid))).toBe('ERR_EXITWATCH_INVALID_OPTION');
    expect(await codeOf(() => monitor.start())).toBe('ERR_EXITWATCH_INVALID_OPTION');
  } finally {
    delete process.env['EXITWATCH_FILTER'];
  }
});
