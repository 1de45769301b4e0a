// Lane: patient

import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { installCommand } from '../support/command';
import { LineProcess, REPOSITORY } from '../support/programs';
import { bootFrom, hasQemu, itWithQemu, itWithQemuAsRoot } from '../support/qemu';
import { itUnderSystemd, underSystemd } from '../support/systemd';
import { arrives, until } from '../support/wait';
import { kill } from '../support/kill';

const EXAMPLES = join(REPOSITORY, 'examples');

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-examples-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const serial = () => join(folder, 'serial');

/** See TestVm.press(). */
async function press(key: string): Promise<void> {
  const socket = connect({ path: serial() });
  let printed = '';
  socket.on('data', (chunk) => (printed += chunk.toString('latin1')));
  socket.on('error', () => undefined); // QEMU closes the socket when the guest obeys
  await arrives(`a server at ${serial()}`, once(socket, 'connect'));
  if (key === 'a') {
    // The guest may not have opened its serial port when the first byte arrives.
    await until('the guest to obey its power button', async () => {
      socket.write(key);
      await setTimeout(50);
      return printed.includes('A');
    });
  } else {
    await until(
      'the machine to end',
      async () => {
        if (!existsSync(join(folder, 'run', 'web.qmp')) || socket.destroyed) return true;
        socket.write(key);
        await setTimeout(50);
        return false;
      },
      stateOfMachine(() => printed),
    );
  }
  socket.destroy();
}

/** What the guest has printed ("R" means that it runs), and what its log files contain. */
function stateOfMachine(printed: () => string): () => string {
  return () => {
    const said = ['web.log', 'web.events'].map((name) => {
      const path = join(folder, 'run', name);
      return `${name}: ${existsSync(path) ? readFileSync(path, 'utf8') : 'none'}`;
    });
    return [`its guest has printed ${JSON.stringify(printed())}`, ...said].join('\n');
  };
}

const options = () => [
  ...['-accel', 'tcg', '-m', '32', '-nodefaults', '-display', 'none', '-no-user-config'],
  ...['-serial', `unix:${serial()},server=on,wait=off`],
  ...bootFrom(join(folder, 'image')),
];

describe('the example manager', () => {
  const manager = (...args: string[]) =>
    new LineProcess(process.execPath, [join(EXAMPLES, 'vm-manager.mjs'), ...args], {
      env: { ...process.env, VMS: folder },
    });

  async function call(...args: string[]): Promise<string> {
    const command = manager(...args);
    const lines = await command.rest();
    await command.ended;
    return [...lines, command.stderr].join('\n').trim();
  }

  /** The answer of `why`, as soon as it includes these words. */
  async function says(words: string): Promise<string> {
    let answer = '';
    const isSaid = async () => (answer = await call('why', 'web')).includes(words);
    await until(`the manager to say “${words}”`, isSaid, () => answer);
    return answer;
  }

  const pidOf = (text: string) => Number(/(\d+)$/.exec(text)?.[1]);

  itWithQemu('is as short as its page says', () => {
    expect(readFileSync(join(EXAMPLES, 'vm-manager.mjs'), 'utf8').split('\n').length).toBeLessThan(
      150,
    );
  });

  itWithQemuAsRoot(
    'starts a machine, leaves it off after its user shuts it down, and restarts it after a kill',
    async () => {
      const watcher = manager('watch');
      try {
        expect(await watcher.line()).toBe('watching');
        expect(await call('why', 'web')).toBe('web is unknown');
        await call('start', 'web', ...options());
        expect(await call('start', 'web', ...options())).toMatch(/web is running/);
        await press('p');
        expect(await watcher.line()).toMatch(/^web: the guest powered itself off \(sure\)/);
        expect(await call('why', 'web')).toMatch(/^web is off; .* powered itself off/);
        expect(await call('stop', 'web')).toBe('web was already off: its user shut it down');

        const first = pidOf(await call('start', 'web', ...options()));
        await says(`is running as process ${first}`);
        kill(first, 'SIGKILL');
        expect(await watcher.line()).toMatch(/^web: a signal killed it: SIGKILL from/);
        const again = (await watcher.line()) ?? '';
        expect(again).toMatch(/^web was started again as process \d+$/);
        const answer = await says('is running as process');
        expect(answer).toMatch(new RegExp(`${pidOf(again)}; last end: .*SIGKILL`));

        await press('a');
        expect(await call('stop', 'web')).toBe('web: graceful');
        expect(await watcher.line()).toMatch(/^web: the guest powered off at our request/);
        expect(await call('why', 'web')).toMatch(/^web is off; .*at our request/);
      } finally {
        watcher.child.kill();
        await watcher.ended;
      }
    },
  );

  test('prints its usage', async () => {
    expect(await call('start', '../x')).toMatch(/^vm-manager: usage/);
    expect(await call('fly')).toMatch(/^vm-manager: usage/);
  });
});

describe('the examples in shell and Python', () => {
  const environment = () => ({ ...installCommand(folder).env, VMS: folder });

  async function run(env: NodeJS.ProcessEnv, example: string, ...args: string[]) {
    const command = new LineProcess(join(EXAMPLES, example), args, { env });
    const lines = await command.rest();
    return { code: await command.ended, said: [...lines, command.stderr].join('\n').trim() };
  }

  test('are as short as their page says', () => {
    for (const example of ['vm.sh', 'vm.py'])
      expect(readFileSync(join(EXAMPLES, example), 'utf8').split('\n').length).toBeLessThan(120);
  });

  test('print their usage', async () => {
    const env = environment();
    expect(await run(env, 'vm.sh', 'start', '../x')).toMatchObject({ code: 2 });
    expect((await run(env, 'vm.py', 'fly')).said).toMatch(/vm.py quit NAME/);
  });

  itWithQemu(
    'start, stop and explain machines, and their stops are recorded as their own',
    async () => {
      const env = environment();
      const state = join(folder, 'state');
      const control = join(folder, 'run');
      mkdirSync(control);
      const daemon = new LineProcess(
        'exitwatch',
        ['vm', 'daemon', '--json', '--control-dir', control, '--state-dir', state],
        { env },
      );
      const says = async (what: RegExp) => {
        let said = '';
        const isSaid = async () => what.test((said = (await run(env, 'vm.sh', 'why', 'web')).said));
        await until(`vm.sh to say ${what}`, isSaid, () => said);
        return said;
      };
      const start = async () => {
        expect(await run(env, 'vm.sh', 'start', 'web', ...options())).toEqual({
          code: 0,
          said: '',
        });
        await says(/^web: running/);
      };
      try {
        const isReady = async () => (await daemon.take(1))[0]?.includes('"event":"ready"');
        await until('the daemon to be ready', isReady, daemon.told);
        await start();
        const waiting = new LineProcess(join(EXAMPLES, 'vm.py'), ['wait', 'web'], { env });
        expect(await waiting.line()).toBe('web: watching');
        await press('p');
        expect(await waiting.line()).toBe('web: guest-shutdown (sure), by its user');
        expect(await says(/^web: stopped/)).toMatch(/marked as its user's shutdown/);
        expect(await run(env, 'vm.sh', 'wanted', 'web')).toMatchObject({ code: 1 });
        expect((await run(env, 'vm.py', 'list')).said).toBe(
          'web: stopped; guest-shutdown (sure), by its user, marked',
        );

        await start();
        expect(await run(env, 'vm.sh', 'wanted', 'web')).toEqual({ code: 0, said: '' });
        expect(await run(env, 'vm.py', 'quit', 'web')).toEqual({ code: 0, said: '' });
        expect(await says(/^web: stopped/)).toMatch(/we told the hypervisor to quit \(sure\)/);

        await start();
        expect(await run(env, 'vm.sh', 'stop', 'web')).toMatchObject({ code: 0 });
        expect(await says(/^web: stopped/)).toMatch(/forced|SIGTERM/);
        expect((await run(env, 'vm.py', 'list')).said).toBe(
          'web: stopped; forced-stop (sure), not by its user',
        );
      } finally {
        daemon.child.kill();
        await daemon.ended;
      }
    },
  );
});

const itWithBoth = hasQemu() ? itUnderSystemd : itWithQemu;

describe('the example unit', () => {
  const unit = 'exitwatch-vm-daemon.service';

  itWithBoth(
    'runs under systemd: signals readiness, restarts after a kill, and loses no end',
    async () => {
      const qemu = [
        'qemu-system-x86_64 -accel tcg -m 32 -nodefaults -display none -no-user-config -daemonize',
        '-pidfile /run/vms/web.pid -qmp unix:/run/vms/web.qmp,server=on,wait=off',
        '-chardev null,id=events,logfile=/run/vms/web.events,logappend=on',
        '-mon chardev=events,mode=control',
      ].join(' ');
      const status = 'exitwatch vm status web --state-dir /var/lib/exitwatch --json';
      copyFileSync(join(EXAMPLES, unit), join(folder, unit));
      const said = await underSystemd(
        folder,
        [unit],
        [
          `systemctl start ${unit}`,
          `systemctl show -p ActiveState --value ${unit}`,
          'mkdir /run/vms',
          qemu,
          `until ${status} | grep -q '"state":"running"'; do sleep 0.05; done`,
          `systemctl kill -s KILL ${unit}`,
          `until [ "$(systemctl show -p NRestarts --value ${unit})" = 1 ]; do sleep 0.05; done`,
          'kill $(cat /run/vms/web.pid)',
          `until ${status} | grep -q '"state":"stopped"'; do sleep 0.05; done`,
          status,
          `until systemctl show -p StatusText --value ${unit} | grep machine; do sleep 0.05; done`,
          `systemctl stop ${unit}; systemctl show -p Result --value ${unit}`,
        ],
      );
      expect(said[0]).toBe('active');
      expect(JSON.parse(said[1] ?? '')).toMatchObject({
        name: 'web',
        state: 'stopped',
        lastStop: { cause: 'forced-stop', userShutdown: false, certainty: 'sure' },
      });
      expect(said.slice(2)).toEqual([
        expect.stringMatching(/^watching \d+ virtual machine/),
        'success',
      ]);
    },
  );
});
