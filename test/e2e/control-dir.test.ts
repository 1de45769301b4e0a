// Lane: patient

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

import { isAlive, writePidfile } from '../../src/process';

import { TestDaemon } from '../support/daemon';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY, run } from '../support/programs';
import { itWithQemu, type TestVm } from '../support/qemu';
import { until } from '../support/wait';

let daemon: TestDaemon;

afterEach(() => daemon.remove());

const at = (file: string) => join(daemon.controlDir, file);

/** Whether a client is connected to this socket of a machine. */
async function isConnected(vm: TestVm, path: string): Promise<boolean> {
  const chardevs = (await vm.ask('query-chardev')) as { filename: string }[];
  return chardevs.some(
    ({ filename }) => filename.includes(path) && !filename.startsWith('disconnected:'),
  );
}

/** A warning of the daemon that matches. */
const warning = (pattern: RegExp) =>
  daemon.until(
    ({ event, message = '' }) => event === 'warning' && pattern.test(message),
    `a warning ${pattern}`,
  );

/** Retries, because the daemon opens the directory for a moment whenever it reads it. */
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

describe('a control directory that comes and goes', () => {
  beforeEach(() => {
    daemon = new TestDaemon({ isThere: false });
  });

  /**
   * Starts a machine in the directory, which must be found, and ends it, which must be reported.
   */
  async function startAndEnd(name: string): Promise<void> {
    const vm = await daemon.vm(name);
    await daemon.found(vm);
    await vm.press('p');
    expect(await daemon.stopped(vm)).toMatchObject({ name, userShutdown: true });
  }

  itWithQemu('is awaited together with its parents, however often it is removed', async () => {
    daemon.controlDir = join(daemon.folder, 'some', 'where', 'control');
    await daemon.start();
    expect(daemon.said[0]).toMatchObject({ event: 'control-dir', isThere: false });
    for (const round of [1, 2, 3]) {
      mkdirSync(daemon.controlDir, { recursive: true });
      await startAndEnd(`round${round}`);
      const top = round === 2 ? join(daemon.folder, 'some') : daemon.controlDir;
      rmSync(top, { recursive: true });
    }
    expect(daemon.count('stopped')).toBe(3);
  });

  itWithQemu(
    'can be removed without ending a watch: the machine’s end is still reported',
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
      // The verdict is sure only if the connection has heard everything since the start. On a busy
      // host it may come too late.
      expect(candidates).toContain('guest-shutdown');
      expect(candidates).not.toContain('forced-stop'); // the cause if nobody had heard a QMP event
      expect([true, null]).toContain(userShutdown);
    },
  );

  itWithQemu('can be replaced by a rename of the directory or of its parent', async () => {
    daemon.controlDir = join(daemon.folder, 'parent', 'control');
    mkdirSync(daemon.controlDir, { recursive: true });
    await daemon.start();
    for (const [index, moved] of [daemon.controlDir, join(daemon.folder, 'parent')].entries()) {
      renameSync(moved, `${moved}-${index}`);
      mkdirSync(daemon.controlDir, { recursive: true });
      await startAndEnd(`after${index}`);
    }
  });

  itWithQemu('can appear with a machine in it, and disappear, a hundred times', async () => {
    await daemon.start();
    const process = await mortal();
    for (let round = 0; round < 100; round++) {
      const aside = join(daemon.folder, 'aside');
      mkdirSync(aside);
      await writePidfile(join(aside, `vm${round}.pid`), process.pid);
      renameSync(aside, daemon.controlDir);
      if (round === 0) await daemon.until(({ event, name }) => event === 'found' && name === 'vm0');
      rmSync(daemon.controlDir, { recursive: true });
    }
    await release(process);
    // One process is one machine. It keeps the name under which it was found first.
    expect(await daemon.until(({ event }) => event === 'stopped')).toMatchObject({ name: 'vm0' });
    await daemon.end();
    expect(daemon.count('found')).toBe(1);
  });

  itAsRoot(
    'can be mounted over and unmounted, even at the instant in which machines appear',
    async () => {
      mkdirSync(daemon.controlDir);
      await daemon.start();
      for (const round of [1, 2]) {
        await run('mount', ['-t', 'tmpfs', 'none', daemon.controlDir]);
        try {
          await startAndEnd(`mounted${round}`);
        } finally {
          await unmount(daemon.controlDir);
        }
        await startAndEnd(`unmounted${round}`);
      }
    },
  );
});

describe('a hostile control directory', () => {
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

  /** Each server runs in a process of its own. */
  async function serve(how: string): Promise<void> {
    const hostile = join(REPOSITORY, 'test', 'programs', 'hostile.cjs');
    const server = new LineProcess(process.execPath, [hostile, at(`${how}.qmp`), how]);
    servers.push(server);
    await server.line();
  }

  itWithQemu('does not hide the end of a well-behaved machine', async () => {
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
    // A process listens on each of these sockets. Its end is reported whatever it sends.
    expect(found.sort()).toEqual(['fine', 'flood', 'garbage', 'silent']);
    await vm.press('p');
    expect(await daemon.stopped(vm)).toMatchObject({ userShutdown: true });
    expect(strangers.map(({ pid }) => isAlive(pid))).toEqual(['alive', 'alive']);
    expect(await Promise.all(strangers.map(release))).toEqual([0, 0]);
    expect(daemon.stderr).toBe('');
  });

  itAsRoot(
    'that users can write to: a user can name only processes of their own, and cannot supply logs',
    async () => {
      const nobody = 65534;
      await run('chmod', ['1777', daemon.controlDir]);
      const victim = await mortal();
      writeFileSync(at('victim.pid'), String(victim.pid));
      chownSync(at('victim.pid'), nobody, nobody);
      const own = new LineProcess('setpriv', [
        ...['--reuid', String(nobody), '--regid', String(nobody), '--clear-groups'],
        ...['bash', '-c', 'exec -a qemu-system-x86_64 sleep 1000'], // by its name a hypervisor
      ]);
      const uid = async () => (await run('ps', ['-o', 'uid=', String(own.pid)])).stdout;
      await until('setpriv to change its user', async () => (await uid()).includes('65534'));
      writeFileSync(at('own.pid'), String(own.pid));
      chownSync(at('own.pid'), nobody, nobody);
      // An ordinary user claims in the log of root's machine that its guest shut down.
      const said = '{"timestamp":{"seconds":4000000000,"microseconds":0},"event":"SHUTDOWN"';
      writeFileSync(
        at('ours.events'),
        `${said},"data":{"guest":true,"reason":"guest-shutdown"}}\n`,
      );
      chownSync(at('ours.events'), nobody, nobody);
      const ours = await mortal();
      await writePidfile(at('ours.pid'), ours.pid);
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

  test('a pidfile of an earlier process does not identify the process that has its pid now', async () => {
    const later = await mortal();
    writeFileSync(at('stale.pid'), String(later.pid));
    await run('touch', ['-d', '1 hour ago', at('stale.pid')]);
    await daemon.start();
    await warning(/is older than process \d+, which it names/);
    expect(daemon.count('found')).toBe(0);
    expect(await release(later)).toBe(0);
  });

  test('two thousand useless files cause one thousand warnings, each once', async () => {
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
