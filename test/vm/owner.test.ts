import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify } from '../../src';
import { ownerOf } from '../../src/vm/directory/vm-owner';
import type { ControlFiles } from '../../src/vm/directory/control-files';
import { listenerOf } from '../../src/native/socket-peer';

import { KERNEL } from '../support/kernel';
import { itIf } from '../support/privilege';
import { LineProcess } from '../support/programs';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-owner-'));
  path = join(folder, 'web.qmp');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Starts a process that listens on the socket. */
async function listener(): Promise<LineProcess> {
  const script =
    "require('node:net').createServer().listen(process.argv[1], () => console.log('listens'))";
  const server = new LineProcess(process.execPath, ['-e', script, path]);
  expect(await server.line()).toBe('listens');
  return server;
}

/** Before any process of this test began. */
const LONG_AGO = new Date(Date.now() - 3_600_000);

const files = (more: Partial<ControlFiles> = {}): ControlFiles => ({
  ...{ name: 'web', qmp: path, pidfile: null, eventLog: null, log: null, signature: '' },
  ...more,
});

test('listenerOf() identifies the listener of a socket while there is one', async () => {
  expect(await listenerOf(path)).toBe('nobody');
  const server = await listener();
  const identity = identify(server.pid);
  expect(await listenerOf(path)).toEqual({
    pid: server.pid,
    uid: process.geteuid?.(),
    inode: identity?.inode ?? 0,
  });
  server.child.kill('SIGKILL');
  await server.ended;
  expect(await listenerOf(path)).toBe('nobody');
  expect(await ownerOf(files())).toMatchObject({ state: 'ended' });
});

itIf(KERNEL.pidfdInodes, 'needs Linux 6.9')(
  'the listener owns the machine, whatever the date of the socket',
  async () => {
    const server = await listener();
    utimesSync(path, LONG_AGO, LONG_AGO);
    expect(await ownerOf(files())).toMatchObject({
      state: 'found',
      identity: { id: identify(server.pid)?.id },
    });
    server.child.kill();
    await server.ended;
  },
);

test('a pidfile that is older than the process with its pid identifies nothing', async () => {
  const later = new LineProcess('sleep', ['1000']);
  const pidfile = join(folder, 'web.pid');
  writeFileSync(pidfile, String(later.pid), { mode: 0o600 });
  expect(await ownerOf(files({ qmp: null, pidfile }))).toMatchObject({ state: 'found' });
  utimesSync(pidfile, LONG_AGO, LONG_AGO);
  expect(await ownerOf(files({ qmp: null, pidfile }))).toMatchObject({
    state: 'unknown',
    error: { message: expect.stringContaining('is older than process') as string },
  });
  later.child.kill();
  await later.ended;
});
