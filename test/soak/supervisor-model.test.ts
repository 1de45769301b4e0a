// Lane: patient

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Childless, HAS_PIDS } from '../support/cgroup1';
import { mortal, release } from '../support/mortal';
import { LineProcess, program } from '../support/programs';
import { randomOf } from '../support/random';
import {
  type Marked,
  marked,
  markedService,
  Supervised,
  type ToldExit,
} from '../support/supervised';
import { until } from '../support/wait';
import { kill } from '../support/kill';

/** How many random operations; `npm run test:soak` does more. */
const STEPS = Number(process.env['EXITWATCH_STEPS'] ?? 120);
const SEED = Number(process.env['EXITWATCH_SEED'] ?? 1);
const SERVICES = 20;
/** Of what is left after a garbage collection. */
const MOST_GROWTH_BYTES = 8 * 2 ** 20;
const MOST_KEEPER_KIB = 3072;
/** Operations between two looks at what runs. */
const BETWEEN = 12;

jest.setTimeout(60_000 + STEPS * 1000);

/** What should be, by the requests alone. */
type Wanted = { variant: number; isStopped: boolean };

/** Variants of this number cannot be started. */
const BROKEN = 3;

class Model {
  readonly word = `model-${process.pid}-${SEED}`;
  readonly stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-model-'));
  readonly random = randomOf(SEED);
  readonly wanted = new Map<string, Wanted>();
  /** By pid and start, since it was seen: how it was killed at a quiet moment, if it was. */
  readonly seen = new Map<string, string | null>();
  readonly exits: ToldExit[] = [];
  readonly began = new Map<string, number>();
  /** Each has the pid of a process of a service that is gone. */
  readonly strangers: LineProcess[] = [];
  readonly log: string[] = [];
  /** What is under way. */
  asked: Promise<unknown>[] = [];
  /** What was killed may be there for another moment. */
  readonly doomed = new Set<string>();
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
    for (const [run, ticks] of this.one.began) this.began.set(run, ticks);
    this.one = new Supervised(this.stateDir);
    this.keeper = await this.one.ready;
    // As a program does that has died: what it was about to ask, it asks again.
    await this.one.request('apply', { services: this.services() });
    for (const [name, { isStopped }] of this.wanted) {
      // Also of what cannot be started: it may be another variant later.
      if (isStopped) await this.one.request('stop', { name });
      else await this.one.request('start', { name }).catch(() => null);
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
    else if (chance < 0.96) await this.killSupervisor();
    else if (chance < 0.98) await this.giveAway();
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
    const one = this.pick(all);
    const { pid, mark } = one;
    this.log.push(`kill ${pid} ${mark}`);
    this.doomed.add(keyOf(one));
    try {
      kill(pid, 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }

  async killSupervisor(): Promise<void> {
    this.log.push('kill the supervisor');
    await this.one.kill();
    await this.reopen();
  }

  /** While nobody looks, a process ends, and a stranger gets its pid. */
  async giveAway(): Promise<void> {
    await this.one.kill();
    this.killKeeper();
    const all = marked(this.word);
    if (all.length > 0) {
      const one = this.pick(all);
      this.doomed.add(keyOf(one));
      kill(one.pid, 'SIGKILL');
      await until(`${one.pid} to be free`, () => !existsSync(`/proc/${one.pid}`));
      const stranger = new LineProcess(program('take-pid'), [String(one.pid)]);
      const isTaken = (await stranger.line()) === 'taken';
      this.log.push(`give ${one.pid} ${isTaken ? 'to a stranger' : 'to nobody'}`);
      if (isTaken) this.strangers.push(stranger);
    }
    await this.reopen();
  }

  killKeeper(): void {
    this.log.push('kill the keeper');
    this.mayBeUnknown = true;
    const keeper = keepers(this.stateDir);
    for (const pid of keeper) {
      try {
        kill(pid, 'SIGKILL');
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
          this.one.process.stderr,
        ].join('\n'),
    );
    const now = new Set(marked(this.word).map(keyOf));
    const gone = [...this.seen].filter(([key]) => !now.has(key));
    for (const [key, signal] of gone) {
      const records = await until(`a record of ${key}`, () => {
        const found = this.recordsOf(key);
        return found.length > 0 && found;
      });
      checkRecords(key, records, this.mayBeUnknown ? null : signal);
      this.seen.delete(key);
    }
    for (const key of now) if (!this.seen.has(key)) this.seen.set(key, null);
    this.mayBeUnknown = false;
  }

  /**
   * The records of one process: of the runs that began when it did. When a run began is not known if
   * its supervisor was killed before it could tell; then the pid must do.
   */
  recordsOf(key: string): ToldExit[] {
    const [pid, ticks] = key.split(':').map(Number);
    return [...this.exits, ...this.one.exits].filter((each) => {
      const began = this.one.began.get(each.run) ?? this.began.get(each.run) ?? 0;
      return each.pid === pid && (began === 0 || began === ticks);
    });
  }

  /** At a quiet moment it is certain what ends a process. */
  async killOneQuietly(): Promise<void> {
    await Promise.all(this.asked);
    this.asked = [];
    await this.look();
    const all = marked(this.word).filter((each) => !this.doomed.has(keyOf(each)));
    if (all.length === 0) return;
    const one = this.pick(all);
    const signal = this.pick(['SIGKILL', 'SIGUSR1', 'SIGALRM', 'SIGTERM'] as const);
    this.log.push(`kill ${one.pid} with ${signal}`);
    this.seen.set(keyOf(one), signal);
    kill(one.pid, signal);
    await until('its record', () => this.recordsOf(keyOf(one)).length > 0);
    await this.look();
  }
}

const keyOf = ({ pid, ticks }: Pick<Marked, 'pid' | 'ticks'>) => `${pid}:${ticks}`;

/**
 * One process is one run, and one end has one status, however often it is told: two runs with records of
 * one pid are two processes, which did not start at the same time.
 */
function checkRecords(key: string, records: readonly ToldExit[], signal: string | null): void {
  expect([key, new Set(records.map(({ run }) => run)).size]).toEqual([key, 1]);
  const ends = new Set(records.map((each) => `${each.how} ${each.signal}`));
  expect([key, [...ends]]).toEqual([key, [[...ends][0]]]);
  for (const { isRepeated } of records.slice(1)) expect(isRepeated).toBe(true);
  for (const { exitCode } of records) expect(exitCode).toBeNull(); // none ever exits by itself
  if (signal !== null) expect(records.at(-1)?.signal).toBe(signal);
}

/** The keepers of this directory. */
function keepers(stateDir: string): number[] {
  const folder = join(stateDir, 'keeper');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && commandLineOf(name).includes(folder))
    .filter((name) => commOf(name) === 'exitwatch-keepr') // its shims have the same command line
    .map(Number);
}

function commOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'latin1').trim();
  } catch {
    return '';
  }
}

/** What a keeper has: its own, and up to three descriptors for each run. */
function checkKeeper(pid: number): void {
  try {
    const open = readdirSync(`/proc/${pid}/fd`).length;
    const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    expect(open).toBeLessThan(20 + 3 * SERVICES);
    expect(Number(kib)).toBeLessThan(MOST_KEEPER_KIB);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error; // it had no runs, and has ended
  }
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
        for (const pid of keepers(model.stateDir)) checkKeeper(pid);
      }
      model.wanted.clear();
      await model.request('apply', { services: [] });
      await model.look();
      await until('no service', async () => {
        const left = (await model.request('services', {})) as [] | null;
        return left?.length === 0;
      });
      await model.one.request('close');
      // Nobody has signalled them.
      for (const each of [stranger, ...model.strangers]) expect(await release(each)).toBe(0);
    } finally {
      await model.one.kill();
      for (const { pid } of marked(model.word)) kill(pid, 'SIGKILL');
      rmSync(model.stateDir, { recursive: true, force: true });
    }
  });
});
