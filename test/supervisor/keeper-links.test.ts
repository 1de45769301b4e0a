// Lane: patient

// What an ordinary user, who owns a folder, can have a keeper of root do: nothing.
import {
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';

import type { RunLogs } from '../../src/supervisor/index.js';
import { KeeperHost } from '../support/keeper';
import { itAsRoot } from '../support/privilege';
import { until } from '../support/wait';

const NOBODY = 65534;

/** A folder of somebody else, with a folder `logs` for its logs; and one of root. */
function foldersIn(host: KeeperHost) {
  const folders = { theirs: host.path('theirs'), ours: host.path('ours') };
  mkdirSync(folders.theirs);
  mkdirSync(`${folders.theirs}/logs`);
  mkdirSync(folders.ours);
  chownSync(folders.theirs, NOBODY, NOBODY);
  return folders;
}

/** What they can do at any moment. */
function swap(theirs: string, ours: string): void {
  renameSync(`${theirs}/logs`, `${theirs}/away`);
  symlinkSync(ours, `${theirs}/logs`);
  lchownSync(`${theirs}/logs`, NOBODY, NOBODY);
}

const OPTIONS: readonly (readonly [string, (file: string) => RunLogs])[] = [
  ['log', (file) => ({ file })],
  ['stdout', (stdout) => ({ stdout })],
  ['stderr', (stderr) => ({ stderr })],
];

describe('a link of somebody else among the folders', () => {
  for (const [step, logsOf] of OPTIONS) {
    itAsRoot(`of ${step} is not followed by a start`, async () => {
      await using host = await KeeperHost.open();
      const { theirs, ours } = foldersIn(host);
      swap(theirs, ours);
      const logs = logsOf(`${theirs}/logs/log`);
      await expect(host.keeper.start({ id: 'a', command: 'true', logs })).rejects.toMatchObject({
        code: 'ERR_EXITWATCH_START_FAILED',
        syscall: step,
        errno: 40,
      });
      expect(readdirSync(ours)).toEqual([]);
    });
  }

  itAsRoot('of a log is not followed while a run goes on', async () => {
    await using host = await KeeperHost.open();
    const { theirs, ours } = foldersIn(host);
    const file = `${theirs}/logs/log`;
    const script = `echo one; while [ ! -e ${host.path('go')} ]; do sleep 0.05; done; echo two`;
    const logs = { file, maxBytes: 1, keep: 2 };
    await host.keeper.start({ id: 'a', command: 'sh', args: ['-c', script], logs });
    await until('the first line', () => existsSync(`${file}.1`));
    swap(theirs, ours);
    writeFileSync(host.path('go'), '');
    await host.end('a');
    renameSync(`${theirs}/logs`, `${theirs}/link`);
    renameSync(`${theirs}/away`, `${theirs}/logs`);
    await until('the second line', () => {
      try {
        return readFileSync(`${file}.1`, 'utf8') === 'two\n';
      } catch {
        return false; // it is being rotated
      }
    });
    expect(readdirSync(ours)).toEqual([]);
  });

  itAsRoot('of a log is not followed by its rotation', async () => {
    await using host = await KeeperHost.open();
    const { theirs, ours } = foldersIn(host);
    const stdout = `${theirs}/logs/log`;
    await host.keeper.start({ id: 'a', command: 'sleep', args: ['1000'], logs: { stdout } });
    swap(theirs, ours);
    writeFileSync(`${ours}/log`, 'ours');
    await expect(host.keeper.rotateLog('a', stdout)).rejects.toMatchObject({ code: 'ELOOP' });
    expect(readdirSync(ours)).toEqual(['log']);
    expect(readFileSync(`${ours}/log`, 'utf8')).toBe('ours');
  });

  itAsRoot('of a pidfile is not followed', async () => {
    await using host = await KeeperHost.open();
    const { theirs, ours } = foldersIn(host);
    swap(theirs, ours);
    const pidfile = `${theirs}/logs/pid`;
    await host.keeper.start({ id: 'a', command: 'sleep', args: ['1000'], pidfile });
    expect(readdirSync(ours)).toEqual([]);
  });
});

itAsRoot('a link of somebody else is followed to a folder of the same one', async () => {
  await using host = await KeeperHost.open();
  const { theirs } = foldersIn(host);
  swap(theirs, 'away');
  chownSync(`${theirs}/away`, NOBODY, NOBODY);
  const logs = { stdout: `${theirs}/logs/out`, stderr: `${theirs}/logs/error` };
  await host.keeper.start({
    id: 'a',
    command: 'sh',
    args: ['-c', 'echo one; exec sleep 1000'],
    logs,
  });
  await until('the line', () => readFileSync(`${theirs}/away/out`, 'utf8') === 'one\n');
  await host.keeper.rotateLog('a', logs.stdout);
  expect(readFileSync(`${theirs}/away/out.1`, 'utf8')).toBe('one\n');
});

it('a link of our own among the folders is followed, whether it is absolute or not', async () => {
  await using host = await KeeperHost.open();
  mkdirSync(host.path('logs', 'deep'), { recursive: true });
  symlinkSync('logs/../logs/deep', host.path('near'));
  symlinkSync(host.path('near'), host.path('far'));
  const stdout = `${host.path('far')}/../deep/./log`;
  const logs = { stdout, stderr: `${host.path('far')}//error` };
  const script = 'echo one; echo two >&2; exec sleep 1000';
  await host.keeper.start({ id: 'a', command: 'sh', args: ['-c', script], logs });
  const read = (name: string) => readFileSync(host.path('logs', 'deep', name), 'utf8');
  await until('both lines', () => read('log') === 'one\n' && read('error') === 'two\n');
  await host.keeper.rotateLog('a', `${host.path('far')}/log`);
  expect(read('log.1')).toBe('one\n');
});

it('a circle of links among the folders is an error', async () => {
  await using host = await KeeperHost.open();
  symlinkSync('two', host.path('one'));
  symlinkSync('one', host.path('two'));
  const logs = { file: host.path('one', 'log') };
  await expect(host.keeper.start({ id: 'a', command: 'true', logs })).rejects.toMatchObject({
    ...{ syscall: 'log', errno: 40 },
  });
});
