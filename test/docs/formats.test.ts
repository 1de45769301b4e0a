// Lane: patient

import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';

import { identify } from '../../src';
import { IntentLog, readIntents, type ControlName, type IntentOutcome } from '../../src/process';
import { readShutdownMarker, readVmRecord, VmDaemon, type Cause } from '../../src/vm';

import { REPOSITORY } from '../support/programs';
import { crashing, itWithQemu, itWithQemuAsRoot, TestVm, type VmSettings } from '../support/qemu';
import { arrives } from '../support/wait';

const DOCUMENT = readFileSync(join(REPOSITORY, 'docs', 'formats.md'), 'utf8');

type Schema = { $defs: Record<string, { enum?: string[] }> };

const schemaOf = (name: string) =>
  JSON.parse(readFileSync(join(REPOSITORY, 'schemas', `${name}.json`), 'utf8')) as Schema;

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
const intentLine = ajv.compile(schemaOf('intent-log'));
const vmRecord = ajv.compile(schemaOf('vm-record'));
const shutdownMarker = ajv.compile(schemaOf('shutdown-marker'));

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-formats-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

type Json = Record<string, unknown>;

/** All objects of a document, including nested ones. */
function* objectsOf(value: unknown): Generator<Json> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Json;
  for (const each of Object.values(value)) yield* objectsOf(each);
}

/** Checks that the document fits the schema, and that it does not with a field added or removed. */
function expectExactly(validate: ValidateFunction, text: string): Json {
  const document = JSON.parse(text) as Json;
  validate(document);
  expect({ document, errors: validate.errors }).toEqual({ document, errors: null });
  for (const object of objectsOf(document)) {
    object['stranger'] = 1;
    expect(validate(document)).toBe(false);
    delete object['stranger'];
    for (const [key, value] of Object.entries(object)) {
      Reflect.deleteProperty(object, key);
      expect({ key, isValid: validate(document) }).toEqual({ key, isValid: false });
      object[key] = value;
    }
  }
  expect(validate(document)).toBe(true);
  return document;
}

const identity = identify(process.pid);
if (identity === null) throw new Error('we are not there');

test('lines of an intent log match their schema', async () => {
  const path = join(folder, 'intents');
  const log = new IntentLog(path);
  const deadline = new Date(Date.now() + 60_000);
  const CONTROLS = {
    control: true,
    powerdown: true,
    quit: true,
    migrate: true,
    save: true,
  } satisfies Record<ControlName, true>;
  const OUTCOMES = {
    ...{ delivered: true, 'not-delivered': true, uncertain: true, superseded: true },
  } satisfies Record<IntentOutcome, true>;
  const ids: string[] = [];
  for (const what of ['SIGTERM', 'SIGRTMIN+3', ...Object.keys(CONTROLS)])
    ids.push(await log.append({ identity, what: what as 'quit', deadline, why: 'tests' }));
  await log.append({ identity, what: 'SIGKILL', deadline });
  for (const outcome of Object.keys(OUTCOMES))
    await log.settle(ids[0] ?? '', outcome as 'uncertain');
  await log.close();
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  expect(lines).toHaveLength(12);
  for (const line of lines) expectExactly(intentLine, line);
});

test('the line shown in the docs matches the schema and can be read', async () => {
  const [, example = ''] = /```json\n([^]*?)```/.exec(DOCUMENT) ?? [];
  expectExactly(intentLine, example);
  const path = join(folder, 'intents');
  writeFileSync(path, `\n${JSON.stringify(JSON.parse(example))}\n`, { mode: 0o600 });
  expect(await readIntents(path)).toMatchObject([{ what: 'quit', outcome: 'expired' }]);
});

test('the schemas list exactly the known causes', () => {
  const CAUSES = {
    ...{
      'start-failed': true,
      'start-exited': true,
      'start-killed': true,
      'migrated-away': true,
      saved: true,
    },
    ...{ 'guest-panic': true, 'guest-watchdog': true, 'guest-reboot': true, 'host-reset': true },
    ...{ 'guest-hibernate': true, 'guest-shutdown': true, 'admin-powerdown': true },
    ...{ 'watchdog-powerdown': true, 'other-powerdown': true, 'manager-quit': true },
    ...{ 'other-quit': true, 'forced-stop': true, 'host-ui': true, 'host-error': true },
    ...{ 'oom-killed': true, killed: true, 'vmm-crash': true, 'vmm-exit': true, unknown: true },
  } satisfies Record<Cause, true>;
  for (const name of ['vm-record', 'shutdown-marker'])
    expect(schemaOf(name).$defs['cause']?.enum).toEqual(Object.keys(CAUSES));
});

/** Ends a machine in this way under a daemon whose hook never returns. */
async function play(settings: VmSettings, act: (vm: TestVm) => unknown) {
  const controlDir = join(folder, 'control');
  const stateDir = join(folder, 'state');
  mkdirSync(controlDir);
  const daemon = new VmDaemon({ controlDir, stateDir, hook: () => new Promise(() => undefined) });
  const vm = new TestVm({ ...settings, control: { folder: controlDir, name: 'web' } });
  const text = (suffix: string) => readFileSync(join(stateDir, `web.${suffix}`), 'utf8');
  try {
    await vm.booted();
    const found = once(daemon, 'found');
    await daemon.start();
    await arrives('the daemon to find the machine', found);
    const running = text('json');
    const stopped = once(daemon, 'stopped');
    await act(vm);
    await arrives('the daemon to report the stop', stopped);
    const marker = existsSync(join(stateDir, 'web.shutdown')) ? text('shutdown') : null;
    expect(await readVmRecord(stateDir, 'web')).toMatchObject({ state: 'stopped' });
    expect((await readShutdownMarker(stateDir, 'web')) === null).toBe(marker === null);
    return { running, stopped: text('json'), marker };
  } finally {
    await daemon.close();
    vm.remove();
  }
}

itWithQemu('the record of a machine and the mark of its user match their schemas', async () => {
  const { running, stopped, marker } = await play({}, (vm) => vm.press('p'));
  expect(expectExactly(vmRecord, running)).toMatchObject({ state: 'running', lastStop: null });
  expect(expectExactly(vmRecord, stopped)).toMatchObject({
    state: 'stopped',
    lastStop: { userShutdown: true },
    undelivered: [{ isRepeated: false }],
  });
  expect(expectExactly(shutdownMarker, marker ?? '')).toMatchObject({ cause: 'guest-shutdown' });
});

itWithQemuAsRoot('the record of a machine that a signal ended matches its schema', async () => {
  const { stopped, marker } = await play({}, (vm) => process.kill(vm.pid, 'SIGKILL'));
  const record = expectExactly(vmRecord, stopped);
  expect(record).toMatchObject({ lastStop: { cause: 'killed', exit: { signal: 'SIGKILL' } } });
  expect(marker).toBeNull();
});

itWithQemu('the record of a machine that crashed matches its schema', async () => {
  const { stopped } = await play({ env: crashing('fault') }, (vm) => {
    vm.crash();
  });
  expect(expectExactly(vmRecord, stopped)).toMatchObject({ lastStop: { cause: 'vmm-crash' } });
});
