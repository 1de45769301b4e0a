// Lane: patient

import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { encodeMessage } from '../../src/supervisor/keeper/message.js';
import { folderOfController } from '../support/controllers';
import { KeeperHost, rawClient } from '../support/keeper';
import { itAsRoot, itAsRootIf } from '../support/privilege';
import { run } from '../support/programs';
import { until } from '../support/wait';

it.each<[string, Buffer]>([
  ['garbage', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['a length of nothing', Buffer.alloc(4)],
  ['a length beyond the limit', Buffer.from([0xff, 0xff, 0xff, 0xff])],
  ['a field without "="', Buffer.from('\x07\0\0\0seq=1\0a', 'latin1')],
  ['a body without its end', Buffer.from('\x04\0\0\0op=x', 'latin1')],
  ['a request without a number', encodeMessage([['op', 'list']])],
  ['a request without an operation', encodeMessage([['seq', '1']])],
  [
    'a negative number',
    encodeMessage([
      ['seq', '-1'],
      ['op', 'list'],
    ]),
  ],
])('%s ends the connection, and nothing else', async (_, bytes) => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
  const socket = await rawClient(host);
  socket.write(bytes);
  await once(socket, 'close');
  expect(host.keeper.run('stays')?.state).toBe('running');
  expect(host.restarts).toBe(0);
});

it.each<[string, [string, string][], string]>([
  ['an unknown operation', [['op', 'destroy']], 'unsupported'],
  [
    'an unknown option of a start',
    [
      ['op', 'start'],
      ['run', 'x'],
      ['file', 'true'],
      ['arg', 'true'],
      ['pray', '1'],
    ],
    'unsupported',
  ],
  [
    'an id that is a path',
    [
      ['op', 'start'],
      ['run', '../x'],
      ['file', 'true'],
      ['arg', 'true'],
    ],
    'bad-request',
  ],
  [
    'a relative log',
    [
      ['op', 'start'],
      ['run', 'x'],
      ['file', 'true'],
      ['arg', 'true'],
      ['out', 'log'],
    ],
    'bad-request',
  ],
  [
    'a number with a sign',
    [
      ['op', 'start'],
      ['run', 'x'],
      ['file', 'true'],
      ['arg', 'true'],
      ['uid', '-1'],
    ],
    'bad-request',
  ],
  [
    'a signal beyond the last',
    [
      ['op', 'signal'],
      ['run', 'stays'],
      ['signal', '65'],
    ],
    'bad-request',
  ],
  [
    'a run that does not exist',
    [
      ['op', 'forget'],
      ['run', 'x'],
    ],
    'no-run',
  ],
])('%s is refused', async (_, fields, code) => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
  const socket = await rawClient(host);
  socket.write(encodeMessage([['seq', '1'], ...fields]));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString('latin1')).toContain(`error=${code}\0`);
  socket.destroy();
  expect(host.keeper.run('stays')?.state).toBe('running');
  expect(host.keeper.run('x')).toBeNull();
});

it('no more than 64 clients are served', async () => {
  await using host = await KeeperHost.open();
  const sockets = await Promise.all(Array.from({ length: 63 }, () => rawClient(host)));
  const more = connect(host.path('keeper', 'socket'));
  more.on('error', () => undefined);
  await once(more, 'close');
  for (const socket of sockets) socket.destroy();
  await host.reopen();
});

itAsRoot('another user can neither connect nor read the state', async () => {
  await using host = await KeeperHost.open();
  chmodSync(host.stateDir, 0o755);
  const attempt = `require('net').connect(${JSON.stringify(host.path('keeper', 'socket'))})
    .on('error', ({ code }) => console.log(code)).on('data', () => console.log('served'))`;
  const asNobody = [
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    process.execPath,
    '-e',
    attempt,
  ];
  expect((await run('setpriv', asNobody)).stdout).toBe('EACCES\n');
  // Even if the folder were open.
  chmodSync(host.path('keeper'), 0o755);
  chmodSync(host.path('keeper', 'socket'), 0o777);
  const other = await run('setpriv', asNobody);
  expect(other.stdout).not.toContain('served');
  chmodSync(host.path('keeper'), 0o700);
});

/** The start of programs on a file system of 64 KiB, in a mount namespace of their own. */
const SMALL_DISK = `
  const { Keeper } = require(${JSON.stringify(require.resolve('../../dist/supervisor/index.js'))});
  const fs = require('fs');
  const fill = () => {
    for (const piece of ['x'.repeat(4096), 'x']) {
      try { for (;;) fs.appendFileSync('/mnt/fill', piece); } catch {}
    }
  };
  const keeper = new Keeper({ stateDir: '/mnt/state' });
  const ended = new Promise((resolve) => keeper.on('ended', (exit, run) => run.id === 'early' && resolve([exit.exitCode ?? exit.signal, run.isStored])));
`;

async function onSmallDisk(program: string): Promise<unknown[]> {
  const mount = 'mount -t tmpfs -o size=64k,nr_inodes=100 none /mnt && exec "$@"';
  const script = `${SMALL_DISK}(async () => {${program}})();`;
  const node = [process.execPath, '-e', script];
  const { stdout } = await run('unshare', ['-m', 'sh', '-c', mount, 'sh', ...node]);
  return JSON.parse(stdout) as unknown[];
}

itAsRoot('a full disk: nothing is started, and ends are known nevertheless', async () => {
  const [late, ended] = await onSmallDisk(`
    await keeper.open();
    await keeper.start({ id: 'early', command: 'sh', args: ['-c', 'while [ ! -e /mnt/full ]; do sleep 0.05; done; exit 5'] });
    fill();
    const late = [];
    for (let i = 0; i < 40; i++) {
      await keeper.start({ id: 'late' + i, command: 'true' }).then(() => late.push('started'), ({ code, message }) => late.push(code + ' ' + message));
    }
    fs.mkdirSync('/mnt/full');
    console.log(JSON.stringify([late.at(-1), await ended]));
    fs.rmSync('/mnt/fill');
    await keeper.start({ id: 'again', command: 'true' });
    for (const { id } of keeper.runs()) { await keeper.stop(id); await keeper.forget(id).catch(() => {}); }
    await keeper.close();`);
  expect(late).toMatch(/^ERR_EXITWATCH_KEEPER .*no space left on device/);
  expect(ended).toEqual([5, true]);
});

itAsRoot('a keeper that starts on a full disk stops what runs', async () => {
  const [stopped, ended] = await onSmallDisk(`
    const { pid } = await keeper.open();
    await keeper.start({ id: 'early', command: 'sleep', args: ['1000'], cgroup: null });
    fill();
    const restarted = new Promise((resolve) => keeper.once('restarted', resolve));
    process.kill(pid, 'SIGKILL');
    await restarted;
    const { isGone } = await keeper.stop('early');
    console.log(JSON.stringify([isGone, await ended]));
    fs.rmSync('/mnt/fill');
    await keeper.forget('early');
    await keeper.close();`);
  expect(stopped).toBe(true);
  expect(ended).toEqual(['SIGTERM', true]);
});

itAsRoot('what cannot be forgotten on a full disk is told again, and forgotten later', async () => {
  const [code, again, isGone] = await onSmallDisk(`
    await keeper.open();
    const ids = Array.from({ length: 45 }, (_, i) => 'run' + i + 'x'.repeat(80));
    let over = 0;
    const allOver = new Promise((resolve) => keeper.on('empty', () => ++over === ids.length && resolve()));
    for (const id of ids) await keeper.start({ id, command: 'sh', args: ['-c', 'exit 5'], cgroup: null });
    await allOver;
    fill();
    // Some room was taken in advance, and so the first ones are forgotten.
    let code = null;
    let id;
    while (code === null && ids.length > 0) {
      id = ids.shift();
      await keeper.forget(id).catch((error) => (code = error.code + ' ' + error.message));
    }
    const again = keeper.run(id)?.waitStatus ?? null;
    fs.rmSync('/mnt/fill');
    await keeper.forget(id);
    console.log(JSON.stringify([code, again, keeper.run(id) === null]));
    for (const { id } of keeper.runs()) await keeper.forget(id);
    await keeper.close();`);
  expect(code).toMatch(/^ERR_EXITWATCH_KEEPER .*no space left on device/);
  expect(again).toBe(5 << 8);
  expect(isGone).toBe(true);
});

itAsRoot('SV-10: the limit of processes of its user (RLIMIT_NPROC) makes starts fail', async () => {
  const other = mkdtempSync(join(tmpdir(), 'exitwatch-nproc-'));
  chmodSync(other, 0o777);
  const library = require.resolve('../../dist/supervisor/index.js');
  const uid = 54_321 + (process.pid % 1000);
  const script = `
    const { Keeper } = require(${JSON.stringify(library)});
    const { execFileSync } = require('child_process');
    const { readFileSync } = require('fs');
    const keeper = new Keeper({ stateDir: ${JSON.stringify(join(other, 'state'))} });
    const attempt = () => keeper.start({ id: 'no', command: 'true' }).then(() => 'started', ({ errno, syscall }) => syscall + ' ' + errno);
    (async () => {
      const { pid } = await keeper.open();
      await keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
      const limit = (most) => execFileSync('prlimit', ['--pid=' + pid, '--nproc=' + most + ':']);
      const [, before] = /^Max processes +(\\w+)/m.exec(readFileSync('/proc/' + pid + '/limits', 'latin1'));
      limit(1);
      const limited = await attempt();
      limit(before);
      console.log(JSON.stringify([limited, await attempt(), keeper.run('stays').state]));
      for (const { id } of keeper.runs()) { await keeper.stop(id); await keeper.forget(id).catch(() => {}); }
      await keeper.close();
    })();`;
  const asOther = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
  const { stdout } = await run('setpriv', [...asOther, process.execPath, '-e', script]);
  expect(JSON.parse(stdout)).toEqual(['fork 11', 'started', 'running']);
  rmSync(other, { recursive: true });
});

const PIDS = folderOfController('pids');

itAsRootIf(PIDS !== null, 'needs the pids controller')(
  'SV-10: a fork that fails is an error, and nothing else suffers',
  async () => {
    const cgroup = join(PIDS ?? '', `exitwatch-keeper-${process.pid}`);
    mkdirSync(cgroup);
    try {
      await using host = await KeeperHost.open();
      await host.keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
      writeFileSync(join(cgroup, 'cgroup.procs'), String(host.keeperPid));
      writeFileSync(join(cgroup, 'pids.max'), '1');
      await expect(host.keeper.start({ id: 'no', command: 'true' })).rejects.toMatchObject({
        ...{ code: 'ERR_EXITWATCH_START_FAILED', syscall: 'fork', errno: 11 },
      });
      writeFileSync(join(cgroup, 'pids.max'), '2');
      await expect(
        host.keeper.start({ id: 'no', command: 'true', cgroup: null }),
      ).rejects.toMatchObject({ code: 'ERR_EXITWATCH_START_FAILED', syscall: 'fork' });
      writeFileSync(join(cgroup, 'pids.max'), 'max');
      await host.keeper.start({ id: 'no', command: 'true' });
      await host.end('no');
      expect(host.keeper.run('stays')?.state).toBe('running');
    } finally {
      await until('the keeper to have left', () => {
        try {
          rmdirSync(cgroup);
          return true;
        } catch {
          const pids = readFileSync(join(cgroup, 'cgroup.procs'), 'latin1').trim().split('\n');
          for (const pid of pids) {
            try {
              writeFileSync(join(PIDS ?? '', 'cgroup.procs'), pid);
            } catch {
              // It has just ended.
            }
          }
          return false;
        }
      });
    }
  },
);

it('a folder that is no cgroup is neither used as one nor removed', async () => {
  await using host = await KeeperHost.open();
  const folder = host.path('a', 'b', 'c');
  mkdirSync(folder, { recursive: true });
  for (const cgroup of [folder, host.path('a'), '/proc/self', '/proc']) {
    const start = host.keeper.start({ id: 'b', command: 'true', cgroup });
    await expect(start).rejects.toMatchObject({
      ...{ code: 'ERR_EXITWATCH_START_FAILED', syscall: 'cgroup' },
    });
  }
  expect(existsSync(folder)).toBe(true);
});
