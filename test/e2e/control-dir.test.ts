import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { isAlive } from '../../src/process';

import { TestDaemon } from '../support/daemon';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY, run } from '../support/programs';
import { itWithQemu, type TestVm } from '../support/qemu';
import { until } from '../support/wait';

let daemon: TestDaemon;

afterEach(() => daemon.remove());

const at = (file: string) => join(daemon.controlDir, file);

/** Whether somebody is connected to that socket of a machine. */
async function isConnected(vm: TestVm, path: string): Promise<boolean> {
  const chardevs = (await vm.ask('query-chardev')) as { filename: string }[];
  return chardevs.some(
    ({ filename }) => filename.includes(path) && !filename.startsWith('disconnected:'),
  );
}

/** What it says is wrong with it. */
const warning = (pattern: RegExp) =>
  daemon.until(
    ({ event, message = '' }) => event === 'warning' && pattern.test(message),
    `a warning ${pattern}`,
  );

/** What is read there is open for a moment: whoever unmounts it tries again. */
async function unmount(point: string): Promise<void> {
  for (let left = 200; ; left--) {
    try {
      await run('umount', [point]);
      return;
    } catch (error) {
      if (left === 0 || !String(error).includes('busy')) throw error;
      await setTimeout(50);
    }
  }
}

describe('a directory that comes and goes', () => {
  beforeEach(() => {
    daemon = new TestDaemon({ isThere: false });
  });

  /** A machine that is there as soon as the directory is: found, and its end told. */
  async function comesAndGoes(name: string): Promise<void> {
    const vm = await daemon.vm(name);
    await daemon.found(vm);
    await vm.press('p');
    expect(await daemon.stopped(vm)).toMatchObject({ name, userShutdown: true });
  }

  itWithQemu('is waited for, with its parents, however often it is removed', async () => {
    daemon.controlDir = join(daemon.folder, 'some', 'where', 'control');
    await daemon.start();
    expect(daemon.said[0]).toMatchObject({ event: 'control-dir', isThere: false });
    for (const round of [1, 2, 3]) {
      mkdirSync(daemon.controlDir, { recursive: true });
      await comesAndGoes(`round${round}`);
      const top = round === 2 ? join(daemon.folder, 'some') : daemon.controlDir;
      rmSync(top, { recursive: true });
    }
    expect(daemon.count('stopped')).toBe(3);
  });

  itWithQemu(
    'leaves what is under watch alone: its end is told, wherever its files are',
    async () => {
      mkdirSync(daemon.controlDir);
      await daemon.start();
      const removed = await daemon.vm('removed');
      await daemon.found(removed);
      await until('the daemon to be connected', () => isConnected(removed, at('removed.qmp')));
      rmSync(daemon.controlDir, { recursive: true });
      await daemon.until(({ event, isThere }) => event === 'control-dir' && isThere === false);
      await removed.press('p');
      const { candidates, userShutdown } = await daemon.stopped(removed);
      // Sure only if that connection has heard all since the start: on a busy host it came too late.
      expect(candidates).toContain('guest-shutdown');
      expect(candidates).not.toContain('forced-stop'); // as if nobody had heard anything of it
      expect([true, null]).toContain(userShutdown);
    },
  );

  itWithQemu('may be replaced by another one, by a rename of it or of a parent', async () => {
    daemon.controlDir = join(daemon.folder, 'parent', 'control');
    mkdirSync(daemon.controlDir, { recursive: true });
    await daemon.start();
    for (const [index, moved] of [daemon.controlDir, join(daemon.folder, 'parent')].entries()) {
      renameSync(moved, `${moved}-${index}`);
      mkdirSync(daemon.controlDir, { recursive: true });
      await comesAndGoes(`after${index}`);
    }
  });

  itWithQemu('may be made at once with a machine in it, a hundred times over', async () => {
    await daemon.start();
    const process = await mortal();
    for (let round = 0; round < 100; round++) {
      const aside = join(daemon.folder, 'aside');
      mkdirSync(aside);
      writeFileSync(join(aside, `vm${round}.pid`), String(process.pid), { mode: 0o600 });
      renameSync(aside, daemon.controlDir);
      if (round === 0) await daemon.until(({ event, name }) => event === 'found' && name === 'vm0');
      rmSync(daemon.controlDir, { recursive: true });
    }
    await release(process);
    // One process is one machine: under the name that it had first.
    expect(await daemon.until(({ event }) => event === 'stopped')).toMatchObject({ name: 'vm0' });
    await daemon.end();
    expect(daemon.count('found')).toBe(1);
  });

  itAsRoot(
    'may be mounted over, and unmounted, with machines that appear at that instant',
    async () => {
      mkdirSync(daemon.controlDir);
      await daemon.start();
      for (const round of [1, 2]) {
        await run('mount', ['-t', 'tmpfs', 'none', daemon.controlDir]);
        try {
          await comesAndGoes(`mounted${round}`);
        } finally {
          await unmount(daemon.controlDir);
        }
        await comesAndGoes(`unmounted${round}`);
      }
    },
  );
});

describe('a hostile directory', () => {
  const servers: LineProcess[] = [];

  beforeEach(() => {
    daemon = new TestDaemon();
  });

  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.child.kill('SIGKILL');
      await server.ended;
    }
  });

  /** Each in a process of its own. */
  async function serve(how: string): Promise<void> {
    const hostile = join(REPOSITORY, 'test', 'programs', 'hostile.cjs');
    const server = new LineProcess(process.execPath, [hostile, at(`${how}.qmp`), how]);
    servers.push(server);
    await server.line();
  }

  itWithQemu('keeps nothing from being told of a machine that is all right', async () => {
    const strangers = await Promise.all([mortal(), mortal()]);
    for (const how of ['silent', 'garbage', 'flood']) await serve(how);
    symlinkSync(at('silent.qmp'), at('link.qmp'));
    writeFileSync(join(daemon.folder, 'elsewhere'), String(strangers[0].pid));
    symlinkSync(join(daemon.folder, 'elsewhere'), at('linked.pid'));
    writeFileSync(at('words.pid'), 'everybody');
    writeFileSync(at('group.pid'), '-1');
    writeFileSync(at('zero.pid'), '0');
    writeFileSync(at('long.pid'), '1'.repeat(100_000));
    writeFileSync(at('open.pid'), String(strangers[0].pid), { mode: 0o666 });
    await run('chmod', ['666', at('open.pid')]);
    writeFileSync(at('file.qmp'), '');
    mkdirSync(at('directory.pid'));
    await run('mkfifo', [at('fifo.pid'), at('fifo.events')]);
    writeFileSync(at('evil\nname\u001b[31m\u202e.pid'), String(strangers[1].pid));
    writeFileSync(
      Buffer.concat([Buffer.from(at('bytes')), Buffer.from([0xff, 0xfe]), Buffer.from('.pid')]),
      String(strangers[1].pid),
    );
    writeFileSync(at(`${'n'.repeat(240)}.pid`), String(strangers[1].pid));
    writeFileSync(at('.hidden.pid'), String(strangers[1].pid));
    await daemon.start();
    const vm = await daemon.vm('fine');
    await daemon.found(vm);
    await warning(/link\.qmp" is a symbolic link/);
    await warning(/linked\.pid" is a symbolic link/);
    await warning(/words\.pid" contains "everybody", which is not a pid/);
    await warning(/group\.pid" contains .*, which is not a pid/);
    await warning(/zero\.pid" contains .*, which is not a pid/);
    await warning(/long\.pid" contains .*, which is not a pid/);
    await warning(/open\.pid" is writable by everyone/);
    await warning(/file\.qmp" is not a socket/);
    await warning(/directory\.pid" is not a regular file/);
    await warning(/fifo\.events" is not a regular file/);
    await warning(
      /evil\\nname\\u001b\[31m.*\.pid" does not contain a valid name of a virtual machine/,
    );
    await warning(/bytes.*\.pid" does not contain a valid name of a virtual machine/);
    await warning(/nnn\.pid" does not contain a valid name/);
    await warning(/silent\.qmp" sent no greeting/);
    await warning(/garbage\.qmp" sent something that is not JSON/);
    await warning(/flood\.qmp" sent a message of more than/);
    const found = daemon.said.filter(({ event }) => event === 'found').map(({ name }) => name);
    // Some process listens there, whatever it says: its end will be told.
    expect(found.sort()).toEqual(['fine', 'flood', 'garbage', 'silent']);
    await vm.press('p');
    expect(await daemon.stopped(vm)).toMatchObject({ userShutdown: true });
    expect(strangers.map(({ pid }) => isAlive(pid))).toEqual(['alive', 'alive']);
    expect(await Promise.all(strangers.map(release))).toEqual([0, 0]);
    expect(daemon.stderr).toBe('');
  });

  itAsRoot(
    'that users can write to: they name no processes but their own, and no logs',
    async () => {
      const nobody = 65534;
      await run('chmod', ['1777', daemon.controlDir]);
      const victim = await mortal();
      writeFileSync(at('victim.pid'), String(victim.pid));
      chownSync(at('victim.pid'), nobody, nobody);
      const own = new LineProcess('setpriv', [
        ...['--reuid', String(nobody), '--regid', String(nobody), '--clear-groups'],
        ...['sleep', '1000'],
      ]);
      const uid = async () => (await run('ps', ['-o', 'uid=', String(own.pid)])).stdout;
      await until('setpriv to change its user', async () => (await uid()).includes('65534'));
      writeFileSync(at('own.pid'), String(own.pid));
      chownSync(at('own.pid'), nobody, nobody);
      // They say that it was the user, in the name of a machine of ours.
      const said = '{"timestamp":{"seconds":4000000000,"microseconds":0},"event":"SHUTDOWN"';
      writeFileSync(
        at('ours.events'),
        `${said},"data":{"guest":true,"reason":"guest-shutdown"}}\n`,
      );
      chownSync(at('ours.events'), nobody, nobody);
      const ours = await mortal();
      writeFileSync(at('ours.pid'), String(ours.pid));
      await daemon.start();
      await daemon.until(({ event, name }) => event === 'found' && name === 'own');
      await warning(
        /victim\.pid.* it belongs to user 65534, but does not name a process of that user/,
      );
      await warning(/ignoring .*ours\.events": it belongs to user 65534/);
      ours.child.kill('SIGTERM');
      expect(
        await daemon.until(({ event, name }) => event === 'stopped' && name === 'ours'),
      ).toMatchObject({ userShutdown: false });
      own.child.kill('SIGKILL');
      await daemon.until(({ event, name }) => event === 'stopped' && name === 'own');
      expect(await release(victim)).toBe(0);
    },
  );

  test('a pidfile that an earlier process has left does not mean who has its pid now', async () => {
    const later = await mortal();
    writeFileSync(at('stale.pid'), String(later.pid));
    await run('touch', ['-d', '1 hour ago', at('stale.pid')]);
    await daemon.start();
    await warning(/is older than process \d+, which it names/);
    expect(daemon.count('found')).toBe(0);
    expect(await release(later)).toBe(0);
  });

  test('two thousand files that are of no use: it warns of a thousand, once each', async () => {
    const aside = mkdtempSync(join(tmpdir(), 'exitwatch-many-'));
    for (let index = 0; index < 2000; index++) writeFileSync(join(aside, `vm${index}.pid`), 'x');
    rmSync(daemon.controlDir, { recursive: true });
    renameSync(aside, daemon.controlDir);
    await daemon.start();
    await warning(/too many warnings/);
    await daemon.end();
    const told = daemon.said.filter(({ event }) => event === 'warning');
    expect(new Set(told.map(({ message }) => message)).size).toBe(told.length);
    expect(told.length).toBe(1001);
  });
});
