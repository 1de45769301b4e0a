// Lane: patient

import { readFileSync, writeFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent, type ExitWatch, type Ready } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { DeathName, DEATHS, DyingProcesses, isEndOf, LATE_STAMP_NS } from '../support/deaths';
import { dead, exitOf, exitsOf } from '../support/ends';
import { mortal } from '../support/mortal';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program, REPOSITORY } from '../support/programs';

const COUNT = 40;

/** Ways to die, all of which a recorder reports exactly. */
const WAYS = (Object.keys(DEATHS) as DeathName[]).filter((name) => name !== 'raw-exits');

const deathsOf = (count: number): DeathName[] =>
  Array.from({ length: count }, (_, i) => WAYS[i % WAYS.length] ?? 'exit-0');

/** What waitpid(2) would return. */
function statusOf({ how, exitCode, signal, coreDumped }: ExitEvent): number | string {
  if (how === 'unknown') return 'unknown';
  if (how === 'exited') return exitCode << 8;
  return (SIGNALS[signal] ?? NaN) | (coreDumped === true ? 0x80 : 0);
}

const SIGNALS: Record<string, number> = {
  ...{ SIGKILL: 9, SIGTERM: 15, SIGSEGV: 11, SIGABRT: 6, 'SIGRTMIN+3': 37 },
};

/**
 * Whether a monitor saw this end itself. The last thread of a process wakes those who wait for it
 * before it sends its message, and may lose its CPU in between: then a pidfd reports the end, without
 * the kernel's time stamp, and the recorder adds how it was. What the recorder alone reports has one.
 */
function isLive({ source, exitedNs }: ExitEvent): boolean {
  return source === 'connector' || exitedNs === null;
}

async function restart(memory: MemoryFolder): Promise<{ monitor: ExitMonitor; ready: Ready }> {
  const monitor = new ExitMonitor(memory.options);
  const ready = await monitor.start();
  expect(ready).toMatchObject({ memory: 'recorder', memoryDowngrade: null });
  return { monitor, ready };
}

/** Watches these pids with a monitor that then goes. */
async function watchAndGo(memory: MemoryFolder, pids: readonly number[]): Promise<ExitWatch[]> {
  const { monitor } = await restart(memory);
  const watches = pids.map((pid) => monitor.watch(pid, { key: `key ${pid}` }));
  await monitor.close();
  return watches;
}

describe('watches of a state directory', () => {
  itAsRecorder('ES-05: have ids that are never given out again, and keys', async () => {
    using memory = new MemoryFolder();
    const sleeper = new LineProcess('sleep', ['1000']);
    const seen: number[] = [];
    for (let round = 0; round < 3; round++) {
      const { monitor, ready } = await restart(memory);
      expect(ready.restored.map(({ id }) => id)).toEqual(seen.slice(-1));
      for (const watch of ready.restored) {
        expect(watch).toMatchObject({ key: 'web2', identity: { pid: sleeper.pid } });
      }
      const first = monitor.watch(sleeper.pid, { key: 'web1' });
      const second = monitor.watch(sleeper.pid, { key: 'web2' });
      for (const watch of [...ready.restored, first]) watch.close();
      seen.push(first.id ?? NaN, second.id ?? NaN);
      if (round === 1)
        writeFileSync(join(memory.stateDir, 'watches'), '{"event":"watch",', { flag: 'a' });
      await monitor.close();
    }
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
    expect(seen).not.toContain(NaN);
    sleeper.child.kill();
    await sleeper.ended;
  });

  itAsRecorder(
    `ES-06, ES-10: ${COUNT} processes that ended meanwhile have their statuses, and the times of their ends`,
    async () => {
      using memory = new MemoryFolder();
      const dying = await DyingProcesses.spawn(deathsOf(COUNT), 'now');
      await watchAndGo(memory, dying.pids);
      const deaths = await dying.die();
      const { monitor, ready } = await restart(memory);
      expect(ready.restored.map(({ key }) => key)).toEqual(dying.pids.map((pid) => `key ${pid}`));
      const ends = await exitsOf(ready.restored);
      for (const death of deaths) {
        const event = ends.find(({ pid }) => pid === death.pid);
        expect({ death: death.name, status: event && statusOf(event) }).toEqual({
          ...{ death: death.name, status: death.status },
        });
        expect(event).toMatchObject({ source: 'recorder', lossless: true, traced: true });
        expect(event?.parentName).toBe('deaths');
        expect(event && isEndOf(death, event)).toBe(true);
        const stampNs = event?.exitedNs ?? NaN;
        expect(stampNs).toBeGreaterThanOrEqual(death.aliveNs);
        expect(stampNs).toBeLessThanOrEqual(death.deadNs + LATE_STAMP_NS);
      }
      await monitor.close();
      // All were delivered, and committed by that.
      const { monitor: next, ready: later } = await restart(memory);
      expect(later.restored).toEqual([]);
      await next.close({ forget: true });
      expect(memory.pinned).toEqual([]);
    },
  );

  itAsRecorder(`${COUNT} processes that were killed meanwhile have their killers`, async () => {
    using memory = new MemoryFolder();
    const targets = await Promise.all(Array.from({ length: COUNT }, () => mortal()));
    await watchAndGo(
      memory,
      targets.map(({ pid }) => pid),
    );
    const killers = targets.map((target, i) => {
      const signal = i % 2 === 0 ? 'TERM' : 'KILL';
      return new LineProcess('sh', ['-c', `kill -${signal} ${target.pid}`]);
    });
    await Promise.all(killers.map((killer) => killer.ended));
    await Promise.all(targets.map((target) => target.ended));
    const { monitor, ready } = await restart(memory);
    const ends = await exitsOf(ready.restored);
    for (const [i, event] of ends.entries()) {
      expect(event).toMatchObject({
        ...{ how: 'killed', signal: i % 2 === 0 ? 'SIGTERM' : 'SIGKILL', traced: true, oom: false },
        sender: { pid: killers[i]?.pid, name: 'sh', origin: 'kill' },
      });
    }
    await monitor.close({ forget: true });
  });

  itAsRecorder(`ES-07: ${COUNT} that live go on being watched`, async () => {
    using memory = new MemoryFolder();
    const dying = await DyingProcesses.spawn(deathsOf(COUNT), 'now');
    const before = await watchAndGo(memory, dying.pids);
    const { monitor, ready } = await restart(memory);
    expect(ready.restored.map(({ id, identity }) => [id, identity])).toEqual(
      before.map(({ id, identity }) => [id, identity]),
    );
    expect(monitor.stats().watches).toBe(COUNT);
    const deaths = await dying.die();
    const ends = await exitsOf(ready.restored);
    for (const death of deaths) {
      const event = ends.find(({ pid }) => pid === death.pid);
      expect({ death: death.name, status: event && statusOf(event) }).toEqual({
        ...{ death: death.name, status: death.status },
      });
      expect(event).toMatchObject({ isRepeated: false, lossless: true, traced: true });
      expect(event && isLive(event)).toBe(true);
    }
    await monitor.close({ forget: true });
  });

  itAsRecorder(
    `ES-08: ${COUNT} strangers that got the pids meanwhile are neither watched nor signalled`,
    async () => {
      using memory = new MemoryFolder();
      const codes: number[] = [];
      const reuse = new LineProcess(program('reuse'), [String(COUNT + 1), '--wait']);
      for (let i = 0; i < COUNT; i++) {
        const [pid = 0, code = 0] = ((await reuse.line()) ?? '').split(' ').map(Number);
        codes.push(code);
        await watchAndGo(memory, [pid]);
        reuse.child.stdin.write('go\n');
      }
      const [stranger = 0] = ((await reuse.line()) ?? '').split(' ').map(Number);
      const { monitor, ready } = await restart(memory);
      expect(new Set(ready.restored.map(({ identity }) => identity.pid))).toEqual(
        new Set([stranger]),
      );
      expect(monitor.stats().watches).toBe(COUNT);
      const ends = await exitsOf(ready.restored);
      expect(ends.map(({ exitCode }) => exitCode)).toEqual(codes);
      expect(monitor.stats().watches).toBe(0);
      process.kill(stranger, 0);
      reuse.child.stdin.write('go\n');
      expect(await reuse.ended).toBe(0);
      await monitor.close({ forget: true });
    },
  );

  itAsRecorder(
    `ES-09: ${COUNT} that end while they are looked up have their statuses`,
    async () => {
      using memory = new MemoryFolder();
      const dying = await DyingProcesses.spawn(deathsOf(COUNT), 'now');
      await watchAndGo(memory, dying.pids);
      const monitor = new ExitMonitor(memory.options);
      const deaths = dying.die();
      const ready = await monitor.start();
      const ends = await exitsOf(ready.restored);
      for (const death of await deaths) {
        const event = ends.find(({ pid }) => pid === death.pid);
        expect({ death: death.name, status: event && statusOf(event) }).toEqual({
          ...{ death: death.name, status: death.status },
        });
      }
      await monitor.close({ forget: true });
    },
  );

  itAsRecorder('ES-11: without a recorder the outcome is unknown', async () => {
    using memory = new MemoryFolder();
    const options = { ...memory.options, recorder: { pinDir: join(memory.path, 'nowhere') } };
    const gone = await mortal('7');
    const alive = new LineProcess('sleep', ['1000']);
    const monitor = new ExitMonitor(options);
    expect(await monitor.start()).toMatchObject({
      ...{ memory: 'none', memoryDowngrade: { code: 'no-bpffs' } },
    });
    for (const { pid } of [gone, alive]) monitor.watch(pid);
    const watchedAt = Date.now();
    await monitor.close();
    gone.child.kill('SIGKILL');
    await gone.ended;

    const next = new ExitMonitor(options);
    const { restored } = await next.start();
    const [first, second] = restored;
    if (first === undefined || second === undefined) throw new Error('not restored');
    const event = await exitOf(first);
    expect(event).toMatchObject({
      ...{ how: 'unknown', exitCode: null, unknownReason: 'gone-while-unobserved' },
    });
    expect(event.exitedAt.getTime() - event.uncertaintyMs).toBeLessThanOrEqual(watchedAt);
    alive.child.kill('SIGTERM');
    const end = await exitOf(second);
    expect(end).toMatchObject({ signal: 'SIGTERM', lossless: true });
    expect(isLive(end)).toBe(true);
    await next.close({ forget: true });
  });

  itAsRecorder(
    `ES-14: a monitor that nothing refers to goes on recording ${COUNT} processes through garbage collections`,
    async () => {
      using memory = new MemoryFolder();
      const script = `
        const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
        (async () => {
          const monitor = new ExitMonitor(${JSON.stringify(memory.options)});
          monitor.on('exit', ({ pid, sender }) => console.log(pid, sender?.pid));
          await monitor.start();
          for (const pid of process.argv.slice(1)) monitor.watch(Number(pid));
        })().then(() => setTimeout(() => {
          for (let i = 0; i < 50; i++) gc();
          console.log('collected');
        }, 100));
        setInterval(gc, 20);
      `;
      const targets = await DyingProcesses.spawn(deathsOf(COUNT), 'now');
      const sleeper = new LineProcess('sleep', ['1000']);
      const args = ['--expose-gc', '-e', script, ...[sleeper.pid, ...targets.pids].map(String)];
      const owner = new LineProcess(process.execPath, args);
      expect(await owner.line()).toBe('collected');
      const killer = new LineProcess('sh', ['-c', `kill ${sleeper.pid}; exit 0`]);
      expect(await owner.line()).toBe(`${sleeper.pid} ${killer.pid}`);
      owner.child.kill('SIGKILL');
      await owner.ended;
      const deaths = await targets.die();
      const { monitor, ready } = await restart(memory);
      const ends = (await exitsOf(ready.restored)).filter(({ pid }) => pid !== sleeper.pid);
      expect(ends.map(statusOf)).toEqual(
        ends.map(({ pid }) => deaths.find((death) => death.pid === pid)?.status),
      );
      expect(ends).toHaveLength(COUNT);
      await monitor.close({ forget: true });
    },
  );

  itAsRecorder('ES-15: more processes than the recorder has room for are refused', async () => {
    using memory = new MemoryFolder();
    const options = {
      ...memory.options,
      recorder: { ...memory.options.recorder, slots: COUNT },
    };
    const targets = await DyingProcesses.spawn(deathsOf(COUNT + 1), 'now');
    const monitor = new ExitMonitor(options);
    await monitor.start();
    const watches = targets.pids.slice(0, COUNT).map((pid) => monitor.watch(pid));
    const [last = 0] = targets.pids.slice(-1);
    expect(() => monitor.watch(last)).toThrow(
      expect.objectContaining({ code: 'ERR_EXITWATCH_RECORDER_FULL' }) as Error,
    );
    expect(monitor.stats().watches).toBe(COUNT);
    watches[0]?.close();
    watches[0] = monitor.watch(last);
    await monitor.close();
    const deaths = await targets.die();
    const next = new ExitMonitor(options);
    const { restored } = await next.start();
    const ends = await exitsOf(restored);
    expect(ends).toHaveLength(COUNT);
    for (const event of ends) {
      const death = deaths.find(({ pid }) => pid === event.pid);
      expect(statusOf(event)).toBe(death?.status);
    }
    await next.close({ forget: true });
  });

  itAsRecorder('ES-19: what a crash left is cleaned up, and the rest is restored', async () => {
    using memory = new MemoryFolder();
    const sleeper = new LineProcess('sleep', ['1000']);
    await watchAndGo(memory, [sleeper.pid]);
    const file = join(memory.stateDir, 'watches');
    const garbage = [
      ...['{"event":"watch","watch":"x"}', '{"event":"exit","watch":77}', 'null', '[]', '{'],
      '{"event":"watch","watch":4,"identity":{"id":"x","pid":1}}',
      '\u0000\u0000',
    ];
    writeFileSync(file, `${garbage.join('\n')}\n${readFileSync(file, 'utf8')}`);
    writeFileSync(join(memory.stateDir, '.watches.0123456789ab'), 'half');
    mkdirSync(join(memory.pinDir, 'new-99999999-01234567'));
    mkdirSync(join(memory.pinDir, '0123456789abcdef'));
    const { monitor, ready } = await restart(memory);
    expect(ready.restored).toHaveLength(1);
    expect(readdirSync(memory.stateDir).sort()).toEqual(['.lock', 'next-watch', 'watches']);
    sleeper.child.kill('SIGTERM');
    const [watch] = ready.restored;
    if (watch === undefined) throw new Error('not restored');
    expect(await exitOf(watch)).toMatchObject({ signal: 'SIGTERM' });
    await monitor.close({ forget: true });
  });

  itAsRecorder('a reboot makes every process unknown whose end was not stored', async () => {
    using memory = new MemoryFolder();
    const [stored, open] = [await mortal('3'), await mortal('4')];
    const first = new ExitMonitor({ ...memory.options, autoCommit: false });
    await first.start();
    const watches = [stored, open].map(({ pid }) => first.watch(pid));
    stored.child.stdin.end();
    const [watch] = watches;
    if (watch === undefined) throw new Error('not watched');
    const before = await exitOf(watch);
    await first.close();
    // Another boot has another id, and nothing that was pinned.
    const file = join(memory.stateDir, 'watches');
    const boot = '01234567-89ab-cdef-0123-456789abcdef';
    const text = readFileSync(file, 'utf8')
      .replaceAll(watch.identity.bootId, boot)
      .replaceAll(watch.identity.id.split('-')[0] ?? '', boot.replaceAll('-', '').slice(0, 12));
    writeFileSync(file, text);
    const { monitor, ready } = await restart(memory);
    const [end, unknown] = await exitsOf(ready.restored);
    expect(end).toMatchObject({ exitCode: before.exitCode, isRepeated: true });
    expect(unknown).toMatchObject({ how: 'unknown', unknownReason: 'gone-while-unobserved' });
    expect(unknown?.startedAt).toBeNull();
    await monitor.close({ forget: true });
    open.child.stdin.end();
    await open.ended;
  });

  itAsRecorder('one monitor owns a state directory', async () => {
    using memory = new MemoryFolder();
    const { monitor } = await restart(memory);
    const other = new ExitMonitor(memory.options);
    await expect(other.start()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_IN_USE' });
    const third = new ExitMonitor(memory.options);
    expect(() => third.watch(1)).toThrow(
      expect.objectContaining({ code: 'ERR_EXITWATCH_IN_USE' }) as Error,
    );
    await monitor.close();
    const { monitor: next } = await restart(memory);
    await next.close({ forget: true });
  });

  itAsRecorder('an exit that was not committed comes again, with its id', async () => {
    using memory = new MemoryFolder();
    const options = { ...memory.options, autoCommit: false };
    const target = await mortal('7');
    const monitor = new ExitMonitor(options);
    await monitor.start();
    const watch = monitor.watch(target.pid, { key: 'job' });
    target.child.stdin.end();
    const event = await exitOf(watch);
    expect(event.isRepeated).toBe(false);
    await monitor.close();
    for (let round = 0; round < 2; round++) {
      const again = new ExitMonitor(options);
      const exits: ExitEvent[] = [];
      const { restored } = await again.start();
      again.on('exit', (each) => exits.push(each));
      const [repeated] = await exitsOf(restored);
      expect(restored.map(({ id, key }) => [id, key])).toEqual([[watch.id, 'job']]);
      expect(repeated).toEqual({ ...event, isRepeated: true });
      expect(exits).toEqual([repeated]);
      if (round === 1) again.commit(event);
      await again.close();
    }
    const last = new ExitMonitor(options);
    expect(await last.start()).toMatchObject({ restored: [] });
    await last.close({ forget: true });
  });

  itAsRecorder('a watch that was closed is forgotten', async () => {
    using memory = new MemoryFolder();
    const sleeper = new LineProcess('sleep', ['1000']);
    const { monitor } = await restart(memory);
    monitor.watch(sleeper.pid).close();
    await monitor.close();
    const { monitor: next, ready } = await restart(memory);
    expect(ready.restored).toEqual([]);
    await next.close({ forget: true });
    sleeper.child.kill();
    await dead(sleeper.pid);
  });
});
