// Lane: patient

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { readIntents } from '../../src/process';
import { QmpClient } from '../../src/vm';

import { blockWith, commandWith, likeOnPage, sessionOf } from '../support/pages';
import { itAsRoot } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { hasQemu, itWithQemu, TestVm } from '../support/qemu';
import { expectAsShown, ShellExamples, until } from '../support/shell-examples';

let examples: ShellExamples;
const machines: TestVm[] = [];

beforeEach(() => {
  examples = new ShellExamples();
});

afterEach(async () => {
  for (const vm of machines.splice(0)) vm.remove();
  await examples.remove();
});

const itWithBoth = hasQemu() ? itAsRoot : itWithQemu;

/** The text of a page, with the test's directories in place of its own. */
const here = (text: string) =>
  text
    .replace(/\/run\/vms|\/var\/lib\/(exitwatch|me)|\/usr\/local\/libexec/g, (path) =>
      examples.at(path.split('/').at(-1) ?? ''),
    )
    .replace(/ &$/, '');

const command = (page: string, part: string) => here(commandWith(`docs/${page}.md`, part));

/** Starts a machine with its files in the control directory. */
async function machine(name = 'web', ...args: string[]): Promise<TestVm> {
  mkdirSync(examples.at('vms'), { recursive: true });
  const control = { folder: examples.at('vms'), name };
  const socket = `unix:${examples.at('vms')}/${name}.control,server=on,wait=off`;
  const vm = new TestVm({ control, args: ['-qmp', socket, ...args] });
  machines.push(vm);
  await vm.booted();
  return vm;
}

itWithBoth('the daemon and vm status print what docs/virtual-machines.md shows', async () => {
  const [daemon, status] = sessionOf(
    blockWith('docs/virtual-machines.md', '$ exitwatch vm daemon'),
  );
  mkdirSync(examples.at('vms'));
  const running = examples.run(`exec ${here(daemon?.command ?? '')}`);
  const lines = await until(running, /watching 0 virtual machines/);
  const db = await machine('db');
  lines.push(...(await until(running, / db: running /)));
  const web = await machine();
  lines.push(...(await until(running, / web: running /)));
  await new LineProcess('bash', ['-c', `kill ${db.pid}; exit 0`]).ended;
  lines.push(...(await until(running, / db: a signal /)));
  await web.press('p');
  lines.push(...(await until(running, / web: the guest /)));
  const told = await examples.run(here(status?.command ?? '')).rest();
  expectAsShown(lines, (daemon?.printed ?? []).map(here));
  expect(told).toEqual(
    status?.printed.map((line) => expect.stringMatching(likeOnPage(line)) as string),
  );
});

describe('docs/vm-daemon.md', () => {
  itWithQemu('the daemon runs a hook; watch prints the same, and status everything', async () => {
    const hook = 'libexec/vm-ended';
    mkdirSync(examples.at('libexec'));
    const script = '#!/bin/sh\necho "hook: $EXITWATCH_NAME $EXITWATCH_CAUSE $EXITWATCH_RESTART"\n';
    writeFileSync(examples.at(hook), script, { mode: 0o755 });
    const daemon = examples.run(`exec ${command('vm-daemon', '--hook')}`);
    await until(daemon, /0 virtual machines/);
    const vm = await machine();
    await until(daemon, /web: running/);
    await vm.press('p');
    const ended =
      /web: the guest powered itself off \(sure\) \[shut down by its user: leave it off\]$/;
    const told = await until(daemon, /^hook: web guest-shutdown false$/);
    expect(told[0]).toMatch(ended);
    daemon.child.kill();
    await daemon.ended;

    expect(await examples.run(command('vm-daemon', 'all; with a NAME')).rest()).toEqual([
      expect.stringMatching(/^web: stopped .*Z, marked as its user's shutdown$/),
      expect.stringMatching(ended),
    ]);

    const watch = examples.run(`exec ${command('vm-daemon', 'vm watch')}`);
    await until(watch, / exists$/);
    const next = await machine();
    await until(watch, /web: running as process/);
    await next.press('p');
    await until(watch, ended);
  });
});

describe('docs/vm-control.md', () => {
  const page = 'vm-control';

  itWithQemu.each([
    ['asks, and waits', 'powerdown', 'exitwatch/intents'],
    ['goes on to signals', 'powerdown', 'exitwatch/intents'],
    ['vm quit', 'quit', 'me/intents'],
  ])('the command with "%s" ends a machine and records its intent', async (part, what, log) => {
    for (const directory of ['exitwatch', 'me']) mkdirSync(examples.at(directory));
    const vm = await machine();
    await vm.press('a');
    const run = examples.run(command(page, part).replace('4242', String(vm.pid)));
    const [line, ...more] = await run.rest();
    expect(line).toMatch(
      new RegExp(`${vm.pid} \\(qemu-.*\\) exited 0, after [\\d.]+s, by a control call$`),
    );
    expect({ more, code: await run.ended }).toEqual({ more: [], code: 0 });
    expect(await readIntents(examples.at(log))).toMatchObject([
      { what, outcome: 'delivered', identity: { pid: vm.pid } },
    ]);
  });

  itWithQemu('vm migrate moves a machine and leaves the source paused', async () => {
    mkdirSync(examples.at('exitwatch'));
    const vm = await machine();
    const uri = `unix:${examples.at('migration')}`;
    const there = new TestVm({ args: ['-incoming', uri], isEarly: true });
    machines.push(there);
    while (!existsSync(examples.at('migration'))) await setTimeout(5);
    const run = examples.run(command(page, 'vm migrate').replace('tcp:elsewhere:4444', uri));
    expect(await run.rest()).toEqual([
      'web: the migration has completed; the machine here is paused',
    ]);
    expect(await run.ended).toBe(0);
    expect([await vm.status(), await there.status()]).toEqual(['postmigrate', 'running']);
  });

  itWithQemu('a manager that writes an intent before acting counts as the initiator', async () => {
    installSocat();
    const daemon = examples.run(`exec ${command('vm-guides', 'vm daemon')}`);
    await until(daemon, /0 virtual machines/);
    const monitor = `unix:${examples.at('vms')}/web.monitor,server=on,wait=off`;
    const vm = await machine('web', '-monitor', monitor);
    await until(daemon, /web: running/);
    await vm.press('a');
    const script = here(blockWith(`docs/${page}.md`, 'intent add')).replace('4242', String(vm.pid));
    const acts = examples.run(script);
    // A machine can end before its manager has settled the intent: then it is not known whether it acted.
    await daemon.stop();
    await acts.rest();
    expect(await acts.ended).toBe(0);
    daemon.child.kill('SIGCONT');
    const [line] = await until(daemon, /web: the guest/);
    expect(line).toMatch(/web: the guest powered off at our request/);
    expect(await readIntents(examples.at('exitwatch/intents'))).toMatchObject([
      { what: 'powerdown', outcome: 'delivered', identity: { pid: vm.pid } },
    ]);
  });

  /** Installs a substitute for socat if it is missing. It accepts the page's arguments. */
  function installSocat(): void {
    if (spawnSync('socat', ['-V']).status === 0) return;
    const script =
      `#!${process.execPath}\nconst socket = require('node:net').connect(process.argv[3]);\n` +
      'process.stdin.pipe(socket).resume();\n';
    writeFileSync(examples.at('bin/socat'), script, { mode: 0o755 });
  }
});

describe('docs/vm-guides.md', () => {
  const page = 'docs/vm-guides.md';

  itWithQemu('a machine with both additions gets a verdict and reports migrations', async () => {
    const daemon = examples.run(`exec ${command('vm-guides', 'vm daemon')}`);
    await until(daemon, /0 virtual machines/);
    mkdirSync(examples.at('vms'));
    const added = here(blockWith(page, 'NAME.qmp')).replaceAll('NAME', 'web');
    const own = `unix:${examples.at('own')},server=on,wait=off`;
    const vm = new TestVm({ manager: () => [...added.trim().split(/\s+/), '-qmp', own] });
    machines.push(vm);
    await vm.booted();
    await until(daemon, /web: running/);
    const { execute, arguments: args } = JSON.parse(blockWith(page, '"execute"')) as {
      execute: string;
      arguments: Record<string, unknown>;
    };
    const client = new QmpClient(examples.at('own'));
    client.on('error', () => undefined);
    await new Promise<void>((resolve) => client.once('ready', resolve));
    await client.execute(execute, args);
    expect(await client.execute('query-migrate-capabilities')).toContainEqual({
      ...{ capability: 'events', state: true },
    });
    client.close();
    await vm.press('p');
    await until(
      daemon,
      /web: the guest powered itself off \(sure\) \[shut down by its user: leave it off\]$/,
    );
  });
});
