// Lane: patient

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

import { childrenOf, KeeperHost } from '../support/keeper';
import { until } from '../support/wait';
import { kill } from '../support/kill';

const forgotten = (host: KeeperHost, id: string) =>
  until(`run ${id} to be forgotten`, () =>
    host.keeper.forget(id).then(
      () => true,
      () => false,
    ),
  );

/** A log with its rotated files. */
const filesOf = (host: KeeperHost, log: string) =>
  readdirSync(host.stateDir).filter((name) => name.startsWith(basename(log)));

it('a log process leaves nothing behind but the log', async () => {
  await using host = await KeeperHost.open();
  const log = host.path('log');
  await host.keeper.start({ id: 'says', command: 'echo', args: ['hi'], logs: { file: log } });
  await host.end('says');
  await forgotten(host, 'says');
  expect(filesOf(host, log)).toEqual(['log']);
  expect(readFileSync(log, 'utf8')).toBe('hi\n');
});

it('a start that fails leaves no FIFO behind', async () => {
  await using host = await KeeperHost.open();
  const log = host.path('log');
  const start = (command: string, cgroup: string | null) =>
    host.keeper.start({ id: 'no', command, cgroup, logs: { file: log } });
  await expect(start('/nosuch', null)).rejects.toMatchObject({ syscall: 'exec' });
  await expect(start('true', '/nosuch')).rejects.toMatchObject({ syscall: 'cgroup' });
  expect(filesOf(host, log).filter((name) => name.endsWith('.fifo'))).toEqual([]);
});

it('two runs that log into one file, which is rotated: no line is lost', async () => {
  await using host = await KeeperHost.open();
  const log = host.path('log');
  const ids = ['a', 'b', 'c'];
  const script = 'i=0; while [ $i -lt 300 ]; do echo "$0$i"; i=$((i + 1)); done';
  await Promise.all(
    ids.map((id) =>
      host.keeper.start({
        ...{ id, command: 'sh', args: ['-c', script, id] },
        logs: { file: log, maxBytes: 1000, keep: 100 },
      }),
    ),
  );
  for (const id of ids) {
    await host.end(id);
    await forgotten(host, id);
  }
  const files = filesOf(host, log);
  const lines = files.flatMap((name) => readFileSync(host.path(name), 'utf8').match(/.*\n/g) ?? []);
  const expected = ids.flatMap((id) => Array.from({ length: 300 }, (_, i) => `${id}${i}\n`));
  expect(lines.sort()).toEqual(expected.sort());
  expect(files.length).toBeGreaterThan(2);
});

it('what a run has left behind is logged, though the keeper and the log process were killed', async () => {
  await using host = await KeeperHost.open();
  const log = host.path('log');
  const script = `(setsid sh -c 'while [ ! -e ${host.path('go')} ]; do echo x; sleep 0.01; done' &)`;
  await host.keeper.start({ id: 'l', command: 'sh', args: ['-c', script], logs: { file: log } });
  await host.end('l');
  const { restarts, keeperPid } = host;
  const logProcess = childrenOf(keeperPid, 'exitwatch-log')[0] ?? 0;
  kill(keeperPid, 'SIGKILL');
  kill(logProcess, 'SIGKILL');
  await until('another keeper', () => host.restarts > restarts);
  const { length } = readFileSync(log);
  await until('the log to grow', () => readFileSync(log).length > length);
});

it('a start whose log cannot be written fails before its command runs', async () => {
  await using host = await KeeperHost.open();
  const start = (file: string) =>
    host.keeper.start({ id: 'no', command: 'touch', args: [host.path('ran')], logs: { file } });
  await expect(start(host.path('missing', 'log'))).rejects.toMatchObject({
    ...{ code: 'ERR_EXITWATCH_START_FAILED', syscall: 'log', errno: 2 },
  });
  await expect(start(host.stateDir)).rejects.toMatchObject({ syscall: 'log' });
  expect(existsSync(host.path('ran'))).toBe(false);
  expect(host.keeper.runs()).toEqual([]);
  expect(readdirSync(host.path('keeper')).filter((name) => name.startsWith('fifo'))).toEqual([]);
});

it.each([
  ['', false],
  [', though its keeper was killed meanwhile', true],
])(
  'what a run that is over could not log does not keep a log process for ever%s',
  async (_, isKilled) => {
    await using host = await KeeperHost.open();
    mkdirSync(host.path('logs'));
    const file = host.path('logs', 'log');
    const script = `while [ ! -e ${host.path('go')} ]; do sleep 0.05; done; echo lost`;
    await host.keeper.start({ id: 'l', command: 'sh', args: ['-c', script], logs: { file } });
    rmSync(host.path('logs'), { recursive: true });
    writeFileSync(host.path('go'), '');
    await host.end('l');
    expect(childrenOf(host.keeperPid, 'exitwatch-log')).toHaveLength(1);
    if (isKilled) {
      const { restarts, keeperPid } = host;
      const [logProcess = 0] = childrenOf(keeperPid, 'exitwatch-log');
      kill(logProcess, 'SIGKILL');
      kill(keeperPid, 'SIGKILL');
      await until('another keeper', () => host.restarts > restarts);
    }
    await forgotten(host, 'l');
    expect(childrenOf(host.keeperPid, 'exitwatch-log')).toEqual([]);
    expect(readdirSync(host.path('keeper')).filter((name) => name.startsWith('fifo'))).toEqual([]);
  },
);

it('what a run could not log is there when its log can be written again', async () => {
  await using host = await KeeperHost.open();
  mkdirSync(host.path('logs'));
  const file = host.path('logs', 'log');
  const script = `while [ ! -e ${host.path('go')} ]; do sleep 0.05; done; echo kept`;
  await host.keeper.start({ id: 'l', command: 'sh', args: ['-c', script], logs: { file } });
  rmSync(host.path('logs'), { recursive: true });
  writeFileSync(host.path('go'), '');
  await host.end('l');
  mkdirSync(host.path('logs'));
  await forgotten(host, 'l');
  expect(readFileSync(file, 'utf8')).toBe('kept\n');
});

it('a log whose folder is gone does not keep a run that is over', async () => {
  await using host = await KeeperHost.open();
  mkdirSync(host.path('logs'));
  const file = host.path('logs', 'log');
  const script = `while [ ! -e ${host.path('go')} ]; do sleep 0.05; done`;
  await host.keeper.start({ id: 'l', command: 'sh', args: ['-c', script], logs: { file } });
  rmSync(host.path('logs'), { recursive: true });
  writeFileSync(host.path('go'), '');
  await host.end('l');
  await forgotten(host, 'l');
  expect(host.keeper.runs()).toEqual([]);
});
