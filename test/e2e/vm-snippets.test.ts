// Lane: patient

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { writePidfile } from '../../src/process';

import { blockWith, likeOnPage } from '../support/pages';
import { itAsRoot } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { bootFrom, hasQemu, itWithQemu, TestVm } from '../support/qemu';
import { connectSerial } from '../support/serial';
import { ShellExamples, until } from '../support/shell-examples';
import { promisesOf, SnippetProject, snippetsOf, type Snippet } from '../support/snippets';
import { until as untilTrue } from '../support/wait';

let project: SnippetProject;
let examples: ShellExamples;
let vm: TestVm | undefined;

beforeAll(async () => {
  project = await SnippetProject.make();
}, 400_000);

afterAll(() => {
  project.remove();
});

beforeEach(() => {
  examples = new ShellExamples();
});

afterEach(async () => {
  vm?.remove();
  vm = undefined;
  await examples.remove();
});

/** A snippet with the test's directories in place of the page's. */
function snippetWith(page: string, part: string): Snippet {
  const [snippet, ...more] = snippetsOf(page).filter(({ text }) => text.includes(part));
  if (snippet === undefined || more.length > 0)
    throw new Error(`no single snippet of ${page} contains ${part}`);
  const text = snippet.text.replace(/\/(run\/vms|var\/lib\/exitwatch)(?=[/'])/g, examples.folder);
  return { ...snippet, text };
}

const itWithBoth = hasQemu() ? itAsRoot : itWithQemu;

/** Starts a machine in the test's directory, with its sockets, whose guest obeys. */
async function machine(...args: string[]): Promise<TestVm> {
  const control = { folder: examples.folder, name: 'web' };
  const socket = `unix:${examples.at('web.control')},server=on,wait=off`;
  vm = new TestVm({ control, args: ['-qmp', socket, ...args] });
  await vm.booted();
  return vm;
}

itWithQemu('the monitor of docs/virtual-machines.md prints what the page says', async () => {
  const page = 'docs/virtual-machines.md';
  const node = project.run(snippetWith(page, 'new VmMonitor'));
  const lines = (await node.rest()).map((line) => line.trimEnd());
  expect(lines.join('\n')).toBe(blockWith(page, 'web1: we told').trim());
  expect(node.stderr).toBe('');
});

describe('the monitor of the README', () => {
  const snippet = () => snippetWith('README.md', 'new VmMonitor');

  /** Makes QEMU boot a guest that powers itself off when its serial port receives a byte. */
  function installGuest(): NodeJS.ProcessEnv {
    const serial = `unix:${examples.at('serial')},server=on,wait=off`;
    const guest = [
      '-accel',
      'tcg',
      '-m',
      '32',
      '-serial',
      serial,
      ...bootFrom(examples.at('image')),
    ];
    const script = `#!/bin/sh\nPATH=\${PATH#*:} exec qemu-system-x86_64 "$@" ${guest.join(' ')}\n`;
    writeFileSync(examples.at('bin/qemu-system-x86_64'), script, { mode: 0o755 });
    return examples.env;
  }

  async function powerOff(): Promise<void> {
    // QEMU may run before its serial port listens.
    const serial = await untilTrue('the serial port to listen', () =>
      connectSerial(examples.at('serial'), () => undefined),
    );
    serial.on('error', () => undefined);
    while (!serial.destroyed) {
      serial.write('p');
      await setTimeout(20);
    }
  }

  const kill = (name: string) => async (pid: string) => {
    await new LineProcess('sh', ['-c', `kill -${name} ${pid}; exit 0`]).ended;
  };
  const ends: [string, (pid: string) => Promise<void>][] = [
    ['powered itself off', powerOff],
    ['SIGTERM', kill('TERM')],
    ['SIGKILL', kill('KILL')],
  ];

  itWithBoth.each(ends)('prints what the README says: %s', async (part, end) => {
    const lines = blockWith('README.md', 'web1: a signal').split('\n');
    const line = lines.find((each) => each.includes(part)) ?? '';
    const { text, ...rest } = snippet();
    // On a busy host the signal trace may begin later than the machine runs.
    const waits = `
      await new Promise((resolve) => monitor.once('running', resolve));
      await monitor.start();
      console.log(pid);`;
    const changed = text.replace('const verdict', `${waits}\nconst verdict`);
    const after = 'console.error(JSON.stringify(verdict.exit));';
    const node = project.run({ ...rest, text: changed }, '', after, installGuest());
    await end((await node.line()) ?? '');
    const printed = (await node.rest()).map((each) => each.trimEnd());
    expect({ printed, exit: node.stderr }).toEqual({
      printed: [expect.stringMatching(likeOnPage(line))],
      exit: expect.stringMatching(/^\{/) as string,
    });
  });
});

itWithQemu('docs/vm-causes.md: prints whether to restart a machine', async () => {
  const guest = await machine();
  const files = `qmp: '${examples.at('web.qmp')}', eventLog: '${examples.at('web.events')}'`;
  const after = `
    const vm = monitor.watch({ name: 'web', pid: ${guest.pid}, ${files} });
    await new Promise((resolve) => monitor.once('running', resolve));
    console.log('running');
    await vm.stopped;
    await monitor.close();
  `;
  const node = project.run(snippetWith('docs/vm-causes.md', 'shouldRestart'), '', after);
  expect(await node.line()).toBe('running');
  await guest.press('p');
  expect(await node.rest()).toEqual(['web guest-shutdown false its guest powered off']);
});

describe('docs/vm-control.md', () => {
  const page = 'docs/vm-control.md';

  itWithQemu('a machine’s state is read, and the machine is stopped', async () => {
    await (await machine()).press('a');
    const snippet = snippetWith(page, 'await vm.stop');
    const node = project.run(snippet);
    expect({ lines: await node.rest(), stderr: node.stderr }).toEqual({
      ...{ lines: promisesOf(snippet), stderr: '' },
    });
  });

  itWithQemu('a QMP command gets its answer', async () => {
    await machine();
    const snippet = snippetWith(page, 'new QmpClient');
    const node = project.run(snippet);
    expect({ lines: await node.rest(), stderr: node.stderr }).toEqual({
      ...{ lines: promisesOf(snippet), stderr: '' },
    });
  });

  itWithQemu(
    'without an answer from the agent, the power button is pressed and the fallback is reported',
    async () => {
      const channel = blockWith(page, 'virtserialport').replace('/run/vms', examples.folder);
      const guest = await machine(...channel.split(/\s+|\\\n/).filter(Boolean));
      await guest.press('a');
      const before = "import { qmpDriver } from 'exitwatch/vm';\n";
      const node = project.run(
        snippetWith(page, 'onFallback'),
        before,
        'await driver.powerDown();',
      );
      expect(await node.rest()).toEqual([]);
      expect(node.stderr).toMatch(
        /^the guest agent's socket ".*web\.agent" did not answer within 5000 ms: /,
      );
      while (guest.child.exitCode === null) await setTimeout(5);
      expect(guest.child.exitCode).toBe(0);
    },
  );

  test('vfkit is stopped together with its companion', async () => {
    const processes = ['vfkit', 'vmnet-helper'].map((name) =>
      examples.start(examples.named(name), ['100']),
    );
    for (const [i, name] of ['vfkit', 'vmnet-helper'].entries()) {
      await writePidfile(join(project.path, `${name}.pid`), processes[i]?.pid ?? 0);
    }
    const before = "import { vfkitDriver, VmControl } from 'exitwatch/vm';\n";
    const after = `
      console.log((await vm.state()).state);
      const { outcome, companions } = await vm.stop();
      console.log(outcome, ...companions.map(({ exit }) => exit.name));
      console.log((await vm.state()).state);
    `;
    const node = project.run(snippetWith(page, 'companions'), before, after);
    expect(await node.rest()).toEqual(['running', 'graceful vmnet-helper', 'stopped']);
    await Promise.all(processes.map(({ ended }) => ended));
  });

  test('its VmDriver equals the exported type', async () => {
    const before = "import type { VmDriver as Own, VmRun, VmWitness } from 'exitwatch/vm';\n";
    const after = `
      type Same = [Own] extends [VmDriver] ? ([VmDriver] extends [Own] ? 'same' : 'less') : 'more';
      const same: Same = 'same';
      console.log(same);
    `;
    const node = project.run(snippetWith(page, 'interface VmDriver'), before, after);
    expect(await node.rest()).toEqual(['same']);
  });

  test('a witness provides a verdict on another hypervisor', async () => {
    const before = `
      import { spawn } from 'node:child_process';
      import { VmMonitor } from 'exitwatch/vm';
      function listenTo(_pid: number, hear: (said: string, at: Date) => void) {
        for (const said of ['up', 'hum', 'guest is off']) hear(said, new Date());
        return { closed: Promise.resolve(), isFromTheStart: true, close: () => undefined };
      }
    `;
    const after = `
      const nothing = () => Promise.resolve();
      const driver = { state: async () => 'up', powerDown: nothing, forceOff: nothing, witness };
      const monitor = new VmMonitor();
      await monitor.start();
      const { pid } = spawn('sleep', ['0.5']);
      const stop = await monitor.watch({ name: 'vm', pid: pid!, driver }).stopped;
      console.log(stop.cause, stop.certainty, stop.userShutdown);
      await monitor.close();
    `;
    const node = project.run(snippetWith(page, 'function witness'), before, after);
    expect(await node.rest()).toEqual(['guest-shutdown sure true']);
  });
});

describe('docs/vm-daemon.md', () => {
  const page = 'docs/vm-daemon.md';

  itWithQemu('the daemon prints why a machine ended, and the mark is found', async () => {
    const daemon = project.run(snippetWith(page, 'new VmDaemon'));
    const guest = await machine();
    while (!existsSync(examples.at('web.json'))) await setTimeout(5);
    await guest.press('p');
    expect(await daemon.line()).toBe('web: the guest powered itself off (sure) false');
    const { lastStopped } = JSON.parse(readFileSync(examples.at('web.json'), 'utf8')) as {
      lastStopped: unknown;
    };
    const before = `const identity = ${JSON.stringify(lastStopped)};\n`;
    const marker = snippetWith(page, 'readShutdownMarker');
    const node = project.run(marker, before, 'console.log(isUsers);');
    expect(await node.rest()).toEqual(['true']);
    const records = project.run(snippetWith(page, 'readVmRecords'));
    expect(await records.rest()).toEqual([
      'web stopped guest-shutdown',
      expect.stringMatching(/^(\d+|its process is not known)$/),
    ]);
    daemon.child.kill();
    await daemon.ended;
    expect(daemon.stderr).toBe('');
  });

  itWithQemu('the directory reports files that come and go', async () => {
    const directory = project.run(snippetWith(page, 'new VmDirectory'));
    expect(await directory.line()).toBe('the directory is there');
    const guest = await machine();
    expect(await directory.line()).toBe(`web runs as ${guest.pid}`);
    await guest.press('p');
    const lines = await until(directory, /powered itself off/);
    expect(lines.at(-1)).toBe('web: the guest powered itself off (sure)');
    directory.child.kill();
    await directory.ended;
    expect(directory.stderr).toBe('');
  });
});
