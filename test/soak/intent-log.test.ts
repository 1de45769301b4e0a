// Lane: patient

import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { identify, type ProcessIdentity } from '../../src';
import { IntentLog, readIntents, readPidfile } from '../../src/process';

import { IntentHistory } from '../../src/process/intent-history';

import { LineProcess, REPOSITORY } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

/** How often each of the two writers is killed. */
const KILLS = 5 * ROUNDS;

const identity = identify(process.pid);
if (identity === null) throw new Error('we are not there');

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-intents-'));
  path = join(folder, 'intents');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const inAMinute = () => new Date(Date.now() + 60_000);

test('an intent is pending until it is settled, and expires if it is not settled in time', async () => {
  const log = new IntentLog(path);
  const first = await log.append({
    identity,
    what: 'SIGTERM',
    deadline: inAMinute(),
    why: 'tests',
  });
  const second = await log.append({
    identity,
    what: 'control',
    deadline: new Date(Date.now() - 1),
  });
  expect(await readIntents(path)).toMatchObject([
    { id: first, what: 'SIGTERM', why: 'tests', outcome: 'pending', identity },
    { id: second, what: 'control', why: null, outcome: 'expired' },
  ]);
  await log.settle(first, 'delivered');
  await log.settle(second, 'uncertain');
  const settled = await readIntents(path);
  expect(settled.map(({ outcome }) => outcome)).toEqual(['delivered', 'uncertain']);
  expect(settled[0]?.deadline).toBeInstanceOf(Date);
  await log.close();
});

test('after the log has been rotated, new intents go to a new file with its name, and both are read', async () => {
  const log = new IntentLog(path);
  const intent = { identity, what: 'SIGTERM', deadline: inAMinute() } as const;
  const before = await log.append(intent);
  renameSync(path, `${path}.1`);
  await log.settle(before, 'delivered');
  const after = await log.append(intent);
  expect(await readIntents(`${path}.1`)).toMatchObject([{ id: before, outcome: 'pending' }]);
  expect(await readIntents(path)).toMatchObject([
    { id: before, outcome: 'delivered' },
    { id: after, outcome: 'pending' },
  ]);
  renameSync(`${path}.1`, `${path}.2`);
  renameSync(path, `${path}.1`);
  expect(await readIntents(path)).toMatchObject([
    { id: before, outcome: 'delivered' },
    { id: after },
  ]);
  rmSync(`${path}.1`);
  const last = await log.append(intent);
  expect(await readIntents(path)).toMatchObject([{ id: before }, { id: last }]);
  await log.close();
});

test('of many that write while the log is rotated, none is refused, and all are on record', async () => {
  const ROTATIONS = 20 * ROUNDS;
  const log = new IntentLog(path);
  const intent = { identity, what: 'SIGTERM', deadline: inAMinute() } as const;
  const ids: string[] = [];
  const refusals: unknown[] = [];
  let isOver = false;
  const write = async () => {
    while (!isOver) {
      const id = await log.append(intent);
      ids.push(id);
      await log.settle(id, 'delivered');
    }
  };
  const writers = Array.from({ length: 8 }, () =>
    write().catch((error: unknown) => refusals.push(error)),
  );
  const missing: string[] = [];
  for (let i = 0; i < ROTATIONS && refusals.length === 0; i++) {
    const before = ids.length;
    await until('more intents', () => ids.length >= before + 5 || refusals.length > 0);
    renameSync(path, `${path}.${i % 9}`);
    await until('a new file', () => existsSync(path) || refusals.length > 0);
    if (i % 5 === 4) await log.close();
    const told = ids.slice(before);
    const known = new Set((await readIntents(path)).map(({ id }) => id));
    missing.push(...told.filter((id) => !known.has(id)));
  }
  isOver = true;
  await Promise.all(writers);
  await log.close();
  expect({ refusals, missing }).toEqual({ refusals: [], missing: [] });
});

test('a file that cannot be looked at any more is opened again, and the log can be closed', async () => {
  const log = new IntentLog(path);
  const intent = { identity, what: 'SIGTERM', deadline: inAMinute() } as const;
  const first = await log.append(intent);
  const other = await open(path);
  const handles = Object.getPrototypeOf(other) as typeof other;
  await other.close();
  const stat = jest.spyOn(handles, 'stat').mockRejectedValueOnce(new Error('ESTALE'));
  const second = await log.append(intent);
  expect(stat).toHaveBeenCalled();
  stat.mockRestore();
  await log.close();
  expect((await readIntents(path)).map(({ id }) => id)).toEqual([first, second]);
});

describe('that intents may be lost is noticed if', () => {
  const refused = {
    code: 'ERR_EXITWATCH_INTENT_LOG',
    message: expect.stringMatching(/may lack/) as unknown,
  };
  const intent = { identity, what: 'SIGTERM', deadline: inAMinute() } as const;
  const aMinuteAgo = () => new Date(Date.now() - 60_000);

  test('a log that was read before is gone, and not if it was rotated', async () => {
    const log = new IntentLog(path);
    const history = new IntentHistory(path);
    await history.note();
    const id = await log.append(intent);
    expect(await history.read(aMinuteAgo())).toMatchObject([{ id }]);
    renameSync(path, `${path}-20261127`);
    expect(await history.read(aMinuteAgo())).toMatchObject([{ id }]);
    const next = await log.append(intent);
    expect(await history.read(aMinuteAgo())).toMatchObject([{ id }, { id: next }]);
    renameSync(path, join(folder, 'elsewhere'));
    await expect(history.read(aMinuteAgo())).rejects.toMatchObject(refused);
    await log.append(intent);
    await expect(history.read(aMinuteAgo())).rejects.toMatchObject(refused);
    await setTimeout(20);
    expect(await history.read(new Date())).toHaveLength(2);
    await log.close();
  });

  test('what was written to is removed, even if an older file remains, and not what came after', async () => {
    const log = new IntentLog(path);
    await log.append(intent);
    renameSync(path, `${path}.1`);
    await setTimeout(20);
    const since = new Date();
    await log.append(intent);
    const history = new IntentHistory(path);
    expect(await history.read(since)).toHaveLength(2);
    rmSync(path);
    await expect(history.read(since)).rejects.toMatchObject(refused);
    await setTimeout(20);
    expect(await history.read(new Date())).toHaveLength(1);
    await log.close();
  });

  test('days of ordinary rotation cost only what is compressed', async () => {
    const log = new IntentLog(path);
    const history = new IntentHistory(path);
    await log.append(intent);
    await history.note();
    // Two days later, with delaycompress.
    rmSync(path);
    const old = new Date(Date.now() - 3_600_000);
    writeFileSync(`${path}.2.gz`, '');
    utimesSync(`${path}.2.gz`, old, old);
    await setTimeout(20);
    const yesterday = await log.append(intent);
    renameSync(path, `${path}.1`);
    await setTimeout(20);
    const since = new Date();
    const today = await log.append(intent);
    expect(await history.read(since)).toMatchObject([{ id: yesterday }, { id: today }]);
    await log.close();
  });

  test('a rotated log is compressed, and was written to since then', async () => {
    const log = new IntentLog(path);
    const id = await log.append(intent);
    await log.close();
    writeFileSync(`${path}.2.gz`, '');
    await expect(new IntentHistory(path).read(aMinuteAgo())).rejects.toMatchObject(refused);
    const old = new Date(Date.now() - 120_000);
    utimesSync(`${path}.2.gz`, old, old);
    expect(await new IntentHistory(path).read(aMinuteAgo())).toMatchObject([{ id }]);
  });

  test('it is younger than it should be', async () => {
    const begunAt = new Date(Date.now() - 3_600_000);
    await expect(new IntentHistory(path, begunAt).read(aMinuteAgo())).rejects.toMatchObject(
      refused,
    );
    const log = new IntentLog(path);
    await log.create();
    await log.close();
    await expect(new IntentHistory(path, begunAt).read(aMinuteAgo())).rejects.toMatchObject(
      refused,
    );
    expect(await new IntentHistory(path, new Date()).read(aMinuteAgo())).toEqual([]);
    expect(await new IntentHistory(path).read(aMinuteAgo())).toEqual([]);
  });
});

test('a missing log has no intents, and a log that others can write to, or a link, is refused', async () => {
  expect(await readIntents(path)).toEqual([]);
  writeFileSync(path, '');
  chmodSync(path, 0o666);
  const refused = { code: 'ERR_EXITWATCH_INTENT_LOG' };
  await expect(readIntents(path)).rejects.toMatchObject(refused);
  const intent = { identity, what: 'SIGTERM', deadline: inAMinute() } as const;
  await expect(new IntentLog(path).append(intent)).rejects.toMatchObject(refused);
  chmodSync(path, 0o600);
  symlinkSync(path, `${path}-link`);
  await expect(readIntents(`${path}-link`)).rejects.toMatchObject(refused);
  await expect(new IntentLog(`${path}-link`).append(intent)).rejects.toMatchObject(refused);
});

test('a torn line or garbage does not affect the other lines', async () => {
  const log = new IntentLog(path);
  const intent = { identity, what: 'SIGTERM', deadline: inAMinute() } as const;
  const ids = [await log.append(intent)];
  for (const garbage of [
    '\n{"event":"intent","id":"torn',
    '\n\u0000\u0001\u0002',
    `\n${'x'.repeat(100_000)}`,
    '\nnull\n17\n[]\n{"event":"intent"}\n{"event":"settled","id":"nobody","outcome":"delivered"}',
    '\n{"event":"settled","id":7}',
  ]) {
    appendFileSync(path, garbage);
    ids.push(await log.append(intent));
  }
  appendFileSync(path, '\n{"event":"intent","id":"the last');
  expect((await readIntents(path)).map(({ id }) => id)).toEqual(ids);
  await log.close();
});

test(
  `after a writer is killed, ${2 * KILLS} times, every intent it confirmed is in the log, complete, and so is its pidfile`,
  async () => {
    const pidfile = join(folder, 'pid');
    const script = `
      const { IntentLog, writePidfile } = require(${JSON.stringify(join(REPOSITORY, 'dist/process'))});
      const { identify } = require(${JSON.stringify(REPOSITORY)});
      const log = new IntentLog(${JSON.stringify(path)});
      const identity = identify(process.pid);
      const forever = async () => {
        await writePidfile(${JSON.stringify(pidfile)});
        for (;;) {
          const deadline = new Date(Date.now() + 60_000);
          console.log(await log.append({ identity, what: 'SIGTERM', deadline }));
          await writePidfile(${JSON.stringify(pidfile)});
        }
      };
      forever();
    `;
    const told = new Set<string>();
    const writers: number[] = [];
    const named: ProcessIdentity[] = [];
    for (let round = 0; round < KILLS; round++) {
      const both = [0, 1].map(() => new LineProcess(process.execPath, ['-e', script]));
      await Promise.all(
        both.map(async (writer) => {
          writers.push(writer.pid);
          told.add((await writer.line()) ?? 'the writer did not begin');
          await setTimeout(Math.random() * 20);
          writer.child.kill('SIGKILL');
          for (const id of await writer.rest()) if (id.length === 36) told.add(id);
        }),
      );
      const { pid, identity: written } = await readPidfile(pidfile);
      expect(writers).toContain(pid);
      if (written !== null) named.push(written); // it was the other's at that moment
    }
    const intents = await readIntents(path);
    const ids = new Set(intents.map(({ id }) => id));
    expect([...told].filter((id) => !ids.has(id))).toEqual([]);
    // Each writer may have written one intent that it could not confirm.
    expect(ids.size).toBeLessThanOrEqual(told.size + 2 * KILLS);
    for (const { identity: whose } of intents) expect(writers).toContain(whose.pid);
    expect(named.length).toBeGreaterThan(0);
    expect(intents.map((intent) => intent.identity)).toEqual(expect.arrayContaining(named));
  },
  60_000 + KILLS * 1000,
);
