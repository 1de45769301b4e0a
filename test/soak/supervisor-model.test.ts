import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Childless, HAS_PIDS } from '../support/cgroup1';
import { mortal, release } from '../support/mortal';
import { marked, markedService, Supervised, type ToldExit } from '../support/supervised';
import { until } from '../support/wait';

/** How many random operations; `npm run test:soak` does more. */
const STEPS = Number(process.env['EXITWATCH_STEPS'] ?? 120);
const SEED = Number(process.env['EXITWATCH_SEED'] ?? 1);
const SERVICES = 20;
/** Of what is left after a garbage collection. */
const MOST_GROWTH_BYTES = 8 * 2 ** 20;
/** Operations between two looks at what runs. */
const BETWEEN = 12;

jest.setTimeout(60_000 + STEPS * 1000);

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What should be, by the requests alone. */
type Wanted = { variant: number; isStopped: boolean };

/** Variants of this number cannot be started. */
const BROKEN = 3;

class Model {
  readonly word = `model-${process.pid}-${SEED}`;
  readonly stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-model-'));
  readonly random = randomOf(SEED);
  readonly wanted = new Map<string, Wanted>();
  /** By pid, since it was seen: how it was killed at a quiet moment, if it was. */
  readonly seen = new Map<number, string | null>();
  readonly exits: ToldExit[] = [];
  readonly log: string[] = [];
  /** What is under way. */
  asked: Promise<unknown>[] = [];
  /** What was killed may be there for another moment. */
  readonly doomed = new Set<number>();
  one: Supervised;
  keeper = 0;
  /** A keeper was killed since the last look: statuses may be unknown. */
  mayBeUnknown = false;

  constructor() {
    this.one = new Supervised(this.stateDir);
  }

  pick<T>(from: readonly T[]): T {
    const found = from[Math.floor(this.random() * from.length)];
    if (found === undefined) throw new Error('nothing to pick from');
    return found;
  }

  marks(): string[] {
    return marked(this.word)
      .map(({ mark }) => mark)
      .sort();
  }

  expected(): string[] {
    return [...this.wanted]
      .filter(([, { variant, isStopped }]) => !isStopped && variant !== BROKEN)
      .map(([name, { variant }]) => `${name}:${variant}`)
      .sort();
  }

  services() {
    return [...this.wanted].map(([name, { variant }]) =>
      markedService(this.word, name, String(variant), {
        backoff: { freeAttempts: 1_000_000, firstMs: 0 },
        stop: { graceMs: 2000 },
        ...(variant === BROKEN ? { command: '/nowhere', backoff: { firstMs: 60_000 } } : {}),
      }),
    );
  }

  async reopen(): Promise<void> {
    this.exits.push(...this.one.exits);
    this.one = new Supervised(this.stateDir);
    this.keeper = await this.one.ready;
    // As a program does that has died: what it was about to ask, it asks again.
    await this.one.request('apply', { services: this.services() });
    for (const [name, { isStopped, variant }] of this.wanted) {
      if (isStopped) await this.one.request('stop', { name });
      else if (variant !== BROKEN) await this.one.request('start', { name }).catch(() => null);
    }
  }

  /** One random operation; what it asks may still be under way when it resolves. */
  async step(): Promise<void> {
    const names = [...this.wanted.keys()];
    const chance = this.random();
    if (chance < 0.2 || names.length === 0) await this.apply();
    else if (chance < 0.4) this.stop(this.pick(names));
    else if (chance < 0.55) this.start(this.pick(names));
    else if (chance < 0.65) this.ask('restart', this.pick(names));
    else if (chance < 0.85) this.killOne();
    else if (chance < 0.87) await this.request('clock', { byMs: (this.random() - 0.5) * 1e9 });
    else if (chance < 0.89) await this.request('setBack', { byMs: this.random() * 1e7 });
    else if (chance < 0.91) await this.forbidForks();
    else if (chance < 0.97) await this.killSupervisor();
    else this.killKeeper();
  }

  async apply(): Promise<void> {
    // What goes and comes in one call was never away.
    const before = new Map(this.wanted);
    for (let changes = 1 + Math.floor(this.random() * 4); changes > 0; changes--) {
      const name = `s${Math.floor(this.random() * SERVICES)}`;
      const now = this.wanted.get(name);
      if (now !== undefined && this.random() < 0.3) this.wanted.delete(name);
      else {
        const variant = Math.floor(this.random() * (BROKEN + 1));
        this.wanted.set(name, { variant, isStopped: before.get(name)?.isStopped ?? false });
      }
    }
    this.log.push(`apply ${JSON.stringify([...this.wanted])}`);
    await this.request('apply', { services: this.services() });
  }

  stop(name: string): void {
    const wanted = this.wanted.get(name);
    if (wanted !== undefined) wanted.isStopped = true;
    this.ask('stop', name);
  }

  start(name: string): void {
    const wanted = this.wanted.get(name);
    if (wanted !== undefined) wanted.isStopped = false;
    this.ask('start', name);
  }

  /** Restarting what is stopped starts it. */
  ask(op: string, name: string): void {
    if (op === 'restart') {
      const wanted = this.wanted.get(name);
      if (wanted !== undefined) wanted.isStopped = false;
    }
    this.log.push(`${op} ${name}`);
    this.asked.push(this.request(op, { name }));
  }

  /** Refusals are not of interest here: only what is in the end. */
  async request(op: string, more: object): Promise<unknown> {
    return this.one.request(op, more).catch(() => null);
  }

  killOne(): void {
    const all = marked(this.word);
    if (all.length === 0) return;
    const { pid, mark } = this.pick(all);
    this.log.push(`kill ${pid} ${mark}`);
    this.doomed.add(pid);
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }

  async killSupervisor(): Promise<void> {
    this.log.push('kill the supervisor');
    await this.one.kill();
    await this.reopen();
  }

  killKeeper(): void {
    this.log.push('kill the keeper');
    this.mayBeUnknown = true;
    const keeper = keepers(this.stateDir);
    for (const pid of keeper) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It had no run left, and has just ended by itself.
      }
    }
  }

  /** For a moment the keeper can start nothing: fork(2) fails with EAGAIN. */
  async forbidForks(): Promise<void> {
    const [pid] = keepers(this.stateDir);
    if (pid === undefined || !HAS_PIDS) return;
    this.log.push('forbid forks');
    await using childless = Childless.of(pid);
    await this.apply();
    this.killOne();
    await sleep(50);
    childless.allow();
  }

  /** Waits until what runs is what should run, and looks at all records. */
  async look(): Promise<void> {
    const wanted = JSON.stringify(this.expected());
    await until(
      'what should run',
      () => JSON.stringify(this.marks()) === wanted,
      () =>
        [
          `seed ${SEED}`,
          `wanted ${wanted}`,
          `is     ${JSON.stringify(this.marks())}`,
          ...this.log.slice(-BETWEEN * 2),
          ...this.one.told.slice(-20),
        ].join('\n'),
    );
    const now = new Set(marked(this.word).map(({ pid }) => pid));
    const gone = [...this.seen].filter(([pid]) => !now.has(pid));
    for (const [pid, signal] of gone) {
      const records = await until(`a record of ${pid}`, () => {
        const found = [...this.exits, ...this.one.exits].filter((each) => each.pid === pid);
        return found.length > 0 && found;
      });
      checkRecords(records, this.mayBeUnknown ? null : signal);
      this.seen.delete(pid);
    }
    for (const pid of now) if (!this.seen.has(pid)) this.seen.set(pid, null);
    this.mayBeUnknown = false;
  }

  /** At a quiet moment it is certain what ends a process. */
  async killOneQuietly(): Promise<void> {
    await Promise.all(this.asked);
    this.asked = [];
    await this.look();
    const all = marked(this.word).filter(({ pid }) => !this.doomed.has(pid));
    if (all.length === 0) return;
    const { pid } = this.pick(all);
    const signal = this.pick(['SIGKILL', 'SIGUSR1', 'SIGALRM', 'SIGTERM'] as const);
    this.log.push(`kill ${pid} with ${signal}`);
    this.seen.set(pid, signal);
    process.kill(pid, signal);
    await until('its record', () => this.one.exits.some((each) => each.pid === pid));
    await this.look();
  }
}

/**
 * One end has one status, however often it is told. The records are those of a pid, which the kernel
 * may have given to several runs, one after the other.
 */
function checkRecords(records: readonly ToldExit[], signal: string | null): void {
  const runs = new Map<string, ToldExit[]>();
  for (const each of records) runs.set(each.run, [...(runs.get(each.run) ?? []), each]);
  for (const [run, all] of runs) {
    expect([run, new Set(all.map((each) => `${each.how} ${each.signal}`)).size]).toEqual([run, 1]);
    for (const { isRepeated } of all.slice(1)) expect(isRepeated).toBe(true);
    for (const { exitCode } of all) expect(exitCode).toBeNull(); // none of them ever exits by itself
  }
  if (signal !== null) expect([...runs.values()].at(-1)?.at(-1)?.signal).toBe(signal);
}

/** The keepers of this directory. */
function keepers(stateDir: string): number[] {
  const folder = join(stateDir, 'keeper');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && commandLineOf(name).includes(folder))
    .map(Number);
}

function commandLineOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
  } catch {
    return [];
  }
}

describe('20 services', () => {
  it(`are what was asked last after ${STEPS} random operations`, async () => {
    const model = new Model();
    const stranger = await mortal();
    try {
      model.keeper = await model.one.ready;
      await model.apply();
      await model.look();
      let descriptors: number | null = null;
      let heapBytes: number | null = null;
      for (let step = 1; step <= STEPS; step++) {
        await model.step();
        if (step % BETWEEN !== 0) continue;
        await model.look();
        await model.killOneQuietly();
        const open = readdirSync(`/proc/${model.one.process.pid}/fd`).length;
        descriptors ??= open;
        expect(open).toBeLessThan(descriptors + 20);
        const heap = (await model.one.request('memory')) as number;
        heapBytes ??= heap;
        expect(heap - heapBytes).toBeLessThan(MOST_GROWTH_BYTES);
      }
      model.wanted.clear();
      await model.request('apply', { services: [] });
      await model.look();
      await until('no service', async () => {
        const left = (await model.request('services', {})) as [] | null;
        return left?.length === 0;
      });
      await model.one.request('close');
      expect(await release(stranger)).toBe(0); // nobody has signalled it
    } finally {
      await model.one.kill();
      for (const { pid } of marked(model.word)) process.kill(pid, 'SIGKILL');
      rmSync(model.stateDir, { recursive: true, force: true });
    }
  });
});
