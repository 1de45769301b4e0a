// Lane: patient

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { encodeMessage } from '../../src/supervisor/keeper/message.js';
import { toRequest } from '../../src/supervisor/keeper/run-options.js';
import { KeeperHost, processesWith } from '../support/keeper';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';
import { kill } from '../support/kill';

const CLIENT = join(__dirname, '..', 'programs', 'keeper-client.cjs');
const KILLS = 25 * ROUNDS;

jest.setTimeout(60_000 * (1 + ROUNDS));

it(`a client killed at any byte of a start, ${KILLS} times: each id runs once, and its end is told once`, async () => {
  await using host = await KeeperHost.open();
  const marks = host.path('marks');
  const optionsOf = (id: string, i: number) => ({
    ...{ id, command: 'sh', args: ['-c', `echo ${id} >> ${marks}; exit ${i % 200}`] },
    ...{ env: { PATH: '/usr/bin:/bin' }, cgroup: null },
  });
  const length = encodeMessage([['seq', '1'], ...toRequest(optionsOf('run0', 0), null)]).length;
  for (let i = 0; i < KILLS; i++) {
    const id = `run${i}`;
    const options = optionsOf(id, i);
    const bytes = encodeMessage([['seq', '1'], ...toRequest(options, null)]);
    // Half of them die within the request, from nothing to all of it; the others while they wait.
    const sent = i % 2 === 0 ? Math.floor((i / KILLS) * (length + 1)) : bytes.length;
    const awaited = i % 2 === 0 ? 0 : i % 4 === 1 ? 1 : 2;
    const args = [host.path('keeper', 'socket'), String(sent), String(awaited)];
    const client = spawn(process.execPath, [CLIENT, ...args, bytes.toString('base64')]);
    const [, signal] = (await once(client, 'close')) as [null, string];
    expect(signal).toBe('SIGKILL');
    if (i % 5 === 0) await host.reopen();
    await host.keeper.start(options);
    expect(await host.end(id)).toMatchObject({ how: 'exited', exitCode: i % 200 });
  }
  const ran = existsSync(marks) ? readFileSync(marks, 'utf8').trimEnd().split('\n') : [];
  expect(ran).toHaveLength(KILLS);
  expect(new Set(ran).size).toBe(KILLS);
  for (const ends of host.ended.values()) {
    // Once for each client that was there after it.
    expect(ends.filter(({ isRepeated }) => !isRepeated).length).toBeLessThanOrEqual(1);
  }
});

it('a keeper killed while runs start: each id runs at most once, and no end is invented', async () => {
  await using host = await KeeperHost.open();
  const marks = host.path('marks');
  const total = 20 * ROUNDS;
  for (let i = 0; i < total; i++) {
    const id = `run${i}`;
    const options = {
      ...{ id, command: 'sh', args: ['-c', `echo ${id} >> ${marks}; exit 7`] },
      ...(i % 2 === 0 ? { cgroup: null } : {}),
    };
    const started = host.keeper.start(options).catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, (i % 10) / 2));
    const before = host.keeperPid;
    kill(before, 'SIGKILL');
    await started;
    await host.keeper.start({ id: `next${i}`, command: 'true' });
    expect(host.keeperPid).not.toBe(before);
  }
  await host.reopen();
  const ran = readFileSync(marks, 'utf8').trimEnd().split('\n');
  expect(new Set(ran).size).toBe(ran.length);
  for (const [id, ends] of host.ended) {
    for (const exit of ends) {
      expect([id.startsWith('next') ? 0 : 7, null]).toContain(exit.exitCode);
      expect(exit.how === 'exited' || exit.how === 'unknown').toBe(true);
    }
  }
});

it('a keeper killed while a run without a cgroup starts and ends: its status is known', async () => {
  await using host = await KeeperHost.open();
  for (let i = 0; i < 20 * ROUNDS; i++) {
    const id = `run${i}`;
    const started = host.keeper.start({
      ...{ id, command: 'sh', args: ['-c', 'exit 7'], cgroup: null },
    });
    await new Promise((resolve) => setTimeout(resolve, (i % 20) / 4));
    kill(host.keeperPid, 'SIGKILL');
    const { restarts } = host;
    await started;
    await until('another keeper', () => host.restarts > restarts);
    expect(await host.end(id)).toMatchObject({ how: 'exited', exitCode: 7 });
  }
});

it('a keeper killed while runs start that stay: what runs is known to the next one, and runs once', async () => {
  await using host = await KeeperHost.open();
  const word = `mark-${randomUUID()}`;
  let ran = 0;
  // Half of them wait until PID 1 has reaped them.
  for (let i = 0; i < 10 * ROUNDS; i++) {
    const [id, mark] = [`run${i}`, `${word}-${i}`];
    const started = host.keeper
      .start({
        ...{ id, command: 'sh', args: ['-c', 'sleep 1000; exit', mark] },
        ...(i % 2 === 0 ? { cgroup: null } : {}),
      })
      .catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, (i % 10) / 4));
    const before = host.keeperPid;
    kill(before, 'SIGKILL');
    await started;
    await host.keeper.start({ id: `next${i}`, command: 'true' });
    const isKnown = host.keeper.run(id)?.state === 'running';
    if (isKnown) {
      await until(`the command of ${id}`, () => processesWith(mark).length === 1);
      // The next keeper asks the parent of a run without a cgroup, as soon as that answers.
      await until(`the pid of ${id}`, () => host.keeper.run(id)?.pid != null);
    }
    const run = host.keeper.run(id);
    expect({ run, pids: processesWith(mark) }).toEqual({ run, pids: isKnown ? [run?.pid] : [] });
    if (isKnown) await host.keeper.stop(id, { signal: 'SIGKILL' });
    ran += isKnown ? 1 : 0;
  }
  expect(ran).toBeGreaterThan(0);
});
