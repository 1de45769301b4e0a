// Lane: patient

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { isAlive, readIntents } from '../../src/process';

import { call, MAIN } from '../support/command';
import { TestDaemon } from '../support/daemon';
import { mortal, release } from '../support/mortal';
import { LineProcess } from '../support/programs';
import { itWithQemu, TestVm, type VmSettings } from '../support/qemu';

let folder: string;
let intentLog: string;
let vm: TestVm | undefined;
let daemon: TestDaemon | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-cli-vm-'));
  intentLog = join(folder, 'intents');
});

afterEach(async () => {
  vm?.remove();
  vm = undefined;
  await daemon?.remove();
  daemon = undefined;
  rmSync(folder, { recursive: true });
});

async function booted(settings: VmSettings = {}): Promise<TestVm> {
  vm = new TestVm(settings);
  await vm.booted();
  return vm;
}

/** The options that identify a machine, with a QMP socket that has no other client. */
function of({ pid, sockets }: TestVm): string[] {
  return ['--pid', String(pid), '--qmp', sockets[0] ?? '', '--intent-log', intentLog];
}

const intents = async () =>
  (await readIntents(intentLog)).map(({ what, outcome }) => [what, outcome]);

itWithQemu('powerdown presses the power button and returns at the machine’s end', async () => {
  const machine = await booted();
  await machine.press('a');
  const { code, lines, stderr } = await call('vm', 'powerdown', ...of(machine), '--reason', 'why');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(lines).toEqual([expect.stringMatching(/^\d+ \(qemu-.*exited 0.*, by a control call$/)]);
  expect(isAlive(machine.pid)).toBe('dead');
  expect(await readIntents(intentLog)).toMatchObject([{ what: 'powerdown', why: 'why' }]);
});

itWithQemu('powerdown reports a guest that ignores it, and leaves it alone', async () => {
  const machine = await booted();
  const command = [process.execPath, MAIN, 'vm', 'powerdown', ...of(machine), '--timeout', '1s'];
  const terminal = new LineProcess('script', ['-qec', command.join(' '), '/dev/null']);
  const lines = (await terminal.rest()).map((line) => line.trim());
  expect(await terminal.ended).toBe(124);
  expect(lines).toEqual([
    expect.stringMatching(/^waiting for \d+ \(qemu-system-x86\): giving up in [\d.]+m?s$/),
    expect.stringMatching(/^\d+ is still running$/),
  ]);
  expect(await machine.status()).toBe('running');
  expect(await intents()).toEqual([['powerdown', 'delivered']]);
});

itWithQemu('quit ends a hypervisor; kill does so without a socket', async () => {
  const machine = await booted();
  const quit = await call('vm', 'quit', ...of(machine), '--json');
  expect(quit).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(quit.lines[0] ?? '')).toMatchObject({
    ...{ event: 'stop', name: String(machine.pid), outcome: 'graceful', via: 'control' },
    exit: { exitCode: 0 },
  });
  machine.remove();
  const other = await booted();
  const killed = await call('vm', 'kill', '--pidfile', other.pidfile, '--intent-log', intentLog);
  expect(killed.lines).toEqual([
    expect.stringMatching(/^\d+ \(qemu-.*killed SIGKILL.*, by SIGKILL$/),
  ]);
  expect((await intents()).map(([what]) => what)).toEqual(['quit', 'SIGKILL']);
});

itWithQemu('stop falls back to signals if the guest does not obey', async () => {
  const machine = await booted();
  const { code, lines } = await call('vm', 'stop', ...of(machine), '--timeout', '100ms');
  expect(code).toBe(0);
  expect(lines).toEqual([expect.stringMatching(/exited 0.*, by the signal$/)]);
  expect((await intents()).map(([what]) => what)).toEqual(['powerdown', 'SIGTERM']);
});

itWithQemu('no command is sent to a socket that belongs to another machine', async () => {
  const machine = await booted();
  const other = await mortal();
  const wrong = ['--pid', String(other.pid), '--qmp', machine.sockets[0] ?? ''];
  const { code, stderr } = await call('vm', 'quit', ...wrong, '--intent-log', intentLog);
  expect(code).toBe(125);
  expect(stderr).toMatch(/belongs to process \d+, not to process \d+/);
  expect(await intents()).toEqual([['quit', 'not-delivered']]);
  expect(await machine.status()).toBe('running');
  expect(await release(other)).toBe(0);
});

itWithQemu('a machine can be addressed by name while a daemon follows its events', async () => {
  const beside = (daemon = new TestDaemon());
  await beside.start();
  const control = join(beside.controlDir, 'web.control');
  const args = ['-qmp', `unix:${control},server=on,wait=off`];
  const machine = await beside.vm('web', { args });
  await beside.found(machine);
  await machine.press('a');
  const directories = ['--control-dir', beside.controlDir, '--state-dir', beside.stateDir];
  expect(await call('vm', 'powerdown', 'web', ...directories)).toMatchObject({
    ...{ code: 0, stderr: '' },
    lines: [expect.stringMatching(/^web: .*exited 0.*, by a control call$/)],
  });
  expect(await beside.stopped(machine)).toMatchObject({
    ...{ cause: 'admin-powerdown', userShutdown: false, initiator: 'manager' },
  });
  const state = ['--state-dir', beside.stateDir];
  expect(await call('vm', 'powerdown', 'web', ...state)).toMatchObject({
    ...{ code: 0, lines: ['web: it was already gone'] },
  });
  expect(await call('vm', 'stop', 'unheard-of', ...state)).toMatchObject({ code: 127 });
});

itWithQemu('migrate reports that the machine has arrived, and the event log agrees', async () => {
  const machine = await booted();
  const uri = 'exec:cat > /dev/null';
  const { code, lines, stderr } = await call('vm', 'migrate', ...of(machine), '--json', uri);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    ...{ event: 'migrate', uri, outcome: 'completed', identity: { pid: machine.pid } },
  });
  expect(await intents()).toEqual([['migrate', 'delivered']]);
  expect(await machine.status()).toBe('postmigrate');
  const logged = readFileSync(machine.eventLog, 'utf8');
  expect(logged).toMatch(/"MIGRATION".*"completed"/);
  const again = await call('vm', 'migrate', ...of(machine), uri);
  expect(again).toMatchObject({ code: 125, lines: [] });
  expect(again.stderr).toMatch(/previous migration/);
});

itWithQemu('a failed migration is reported, and the machine goes on', async () => {
  const machine = await booted();
  const failed = await call('vm', 'migrate', ...of(machine), `unix:${folder}/nobody`);
  expect(failed).toMatchObject({ code: 125 });
  expect(failed.lines).toEqual([expect.stringMatching(/^\d+: the migration failed/)]);
  const refused = await call('vm', 'migrate', ...of(machine), 'pigeon:home');
  expect(refused).toMatchObject({ code: 125, lines: [] });
  expect(refused.stderr).toMatch(/refused the command: .*migration/);
  expect(await intents()).toEqual([
    ['migrate', 'not-delivered'],
    ['migrate', 'not-delivered'],
  ]);
  expect(await machine.status()).toBe('running');
});

test('intent add records an intent and intent settle settles it', async () => {
  const target = await mortal();
  const who = ['--pid', String(target.pid), '--intent-log', intentLog];
  const { code, lines } = await call('intent', 'add', 'term', ...who, '--reason', 'an upgrade');
  expect(code).toBe(0);
  const [intent] = await readIntents(intentLog);
  expect(intent).toMatchObject({
    ...{ id: lines[0], what: 'SIGTERM', why: 'an upgrade', outcome: 'pending' },
    identity: { pid: target.pid },
  });
  const lastsMs = (intent?.deadline.getTime() ?? 0) - (intent?.at.getTime() ?? 0);
  expect(Math.abs(lastsMs - 60_000)).toBeLessThan(1000);
  const log = ['--intent-log', intentLog];
  expect(await call('intent', 'settle', lines[0] ?? '', 'delivered', ...log)).toMatchObject({
    ...{ code: 0, lines: [], stderr: '' },
  });
  expect(await intents()).toEqual([['SIGTERM', 'delivered']]);
  const json = await call('intent', 'add', 'migrate', ...who, '--deadline', '1h', '--json');
  expect(JSON.parse(json.lines[0] ?? '')).toMatchObject({
    ...{ event: 'intent', what: 'migrate', why: null, identity: { pid: target.pid } },
  });
  expect(await release(target)).toBe(0);
  expect(await call('intent', 'add', 'quit', ...who)).toMatchObject({ code: 127, lines: [] });
});

test.each<[number, string[]]>([
  [2, ['add']],
  [2, ['add', 'explode', '--pid', '1']],
  [2, ['add', 'quit']],
  [2, ['add', 'quit', '--pid', 'x']],
  [2, ['add', 'quit', '--pid', '-1']],
  [2, ['add', 'quit', '--pid', '0']],
  [2, ['add', 'quit', '--pid', '1', '--deadline', 'soon']],
  [2, ['add', 'quit', '--pid', '1', '--reason', 'LONG']],
  [2, ['add', 'quit', '--pid', '1', '--pidfile', 'x']],
  [127, ['add', 'quit', '--pidfile', '/nowhere/at/all']],
  [2, ['settle', 'x']],
  [2, ['settle', 'x', 'well']],
  [127, ['settle', 'x', 'delivered']],
])('exits with %i and writes nothing: intent %p', async (code, args) => {
  const real = args.map((each) => each.replace('LONG', 'x'.repeat(2000)));
  const result = await call('intent', ...real, '--intent-log', intentLog);
  expect(result).toMatchObject({ code, lines: [] });
  expect(result.stderr).toMatch(/^exitwatch: /);
  expect(existsSync(intentLog)).toBe(false);
});

test.each<[number, string[]]>([
  [2, ['powerdown']],
  [2, ['powerdown', 'a', 'b']],
  [2, ['powerdown', 'a']],
  [2, ['powerdown', '--pid', '1', '--intent-log', 'LOG']],
  [2, ['quit', '--pid', '1', '--agent', 'x', '--intent-log', 'LOG']],
  [2, ['quit', '--pid', '1', '--qmp', 'x']],
  [2, ['quit', '--pid', '1', '--qmp', '', '--intent-log', 'LOG']],
  [2, ['stop', '../x', '--state-dir', 'DIR']],
  [2, ['kill', '--pid', '1', '--timeout', '1s', '--intent-log', 'LOG']],
  [2, ['migrate', 'a', '--state-dir', 'DIR']],
  [2, ['migrate', '--pid', '1', '--intent-log', 'LOG', 'tcp:x:1']],
  [127, ['stop', 'a', '--control-dir', 'DIR', '--intent-log', 'LOG']],
  [127, ['kill', '--pidfile', 'DIR/x.pid', '--intent-log', 'LOG']],
  [125, ['powerdown', '--pid', 'OURS', '--qmp', 'DIR/x', '--intent-log', 'DIR/x/y']],
  [125, ['powerdown', '--pid', 'OURS', '--qmp', 'DIR/no', '--intent-log', 'DIR/log']],
  [125, ['kill', '--pid', '1', '--intent-log', 'LOG']],
])('exits with %i and does nothing: vm %p', async (code, args) => {
  writeFileSync(join(folder, 'x'), '');
  const target = await mortal();
  const real = args.map((each) =>
    each.replace('LOG', intentLog).replace('DIR', folder).replace('OURS', String(target.pid)),
  );
  const result = await call('vm', ...real);
  expect(result).toMatchObject({ code, lines: [] });
  expect(result.stderr).toMatch(/^exitwatch: /);
  expect(existsSync(intentLog)).toBe(false);
  expect(await release(target)).toBe(0);
});
