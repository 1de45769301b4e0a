import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  Supervisor,
  type ServicePhase,
  type ServiceSpec,
  type ServiceStatus,
  type SupervisorEvents,
  type SupervisorOptions,
  type SupervisorReady,
} from '../../src/supervisor/index.js';

import { forgetAll } from './keeper';
import { until } from './wait';

/** A clock that only a test sets. */
export class TestClock {
  #nowMs = 1_000_000;
  readonly #timers = new Set<{ atMs: number; call: () => void }>();

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, call: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, call };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  setBack(ms: number): void {
    this.#nowMs -= ms;
  }

  /** Time passes, and nobody is called: we are stopped. */
  skip(ms: number): void {
    this.#nowMs += ms;
  }

  /** Calls what is due on the way, in order. */
  advance(ms: number): void {
    const end = this.#nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers]
        .filter(({ atMs }) => atMs <= end)
        .sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.call();
    }
    this.#nowMs = end;
  }
}

type Told = {
  [Name in keyof SupervisorEvents]: { name: Name; event: SupervisorEvents[Name][0] };
}[keyof SupervisorEvents];

const EVENTS = [
  ...(['started', 'adopted', 'exit', 'backoff', 'ready', 'stopped', 'orphan', 'warning'] as const),
];

export type StoredRecord = Record<string, unknown> & { run: Record<string, unknown> | null };

/** A supervisor with a directory of its own, and all that it has told. */
export class SupervisorHost implements AsyncDisposable {
  readonly stateDir: string;
  readonly clock = new TestClock();
  readonly told: Told[] = [];
  readonly #more: Omit<SupervisorOptions, 'stateDir'>;
  supervisor: Supervisor;
  ready: SupervisorReady | undefined;

  private constructor(more: Omit<SupervisorOptions, 'stateDir'>) {
    this.stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-supervisor-'));
    this.#more = more;
    this.supervisor = this.#create();
  }

  static async open(more: Omit<SupervisorOptions, 'stateDir'> = {}): Promise<SupervisorHost> {
    const host = new SupervisorHost(more);
    host.ready = await host.supervisor.start();
    return host;
  }

  /** Another one, which was not started. */
  static beside(stateDir: string): Supervisor {
    return new Supervisor({ stateDir });
  }

  /** The same directory, by a supervisor that knows nothing else. */
  async reopen(meanwhile?: () => unknown): Promise<SupervisorReady> {
    await this.supervisor.close();
    await meanwhile?.();
    this.supervisor = this.#create();
    this.ready = await this.supervisor.start();
    return this.ready;
  }

  path(...names: string[]): string {
    return join(this.stateDir, ...names);
  }

  read(file: string): string {
    return readFileSync(this.path(file), 'utf8');
  }

  /** The stored record of a service: what it was at first, and what has changed since. */
  record(name: string): StoredRecord {
    const lines = readFileSync(this.path('services', `${name}.json`), 'utf8')
      .trim()
      .split('\n');
    const [first, ...changes] = lines.map((line) => JSON.parse(line) as StoredRecord);
    return { ...first, ...changes.at(-1) } as StoredRecord;
  }

  /** Changes the stored record of a service. There must be no supervisor. */
  edit(name: string, change: (record: StoredRecord) => void): void {
    const record = this.record(name);
    change(record);
    const path = this.path('services', `${name}.json`);
    writeFileSync(path, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  }

  /** Applies without waiting for others. */
  async apply(...services: ServiceSpec[]) {
    const applied = this.supervisor.apply(services);
    this.clock.advance(500);
    return applied;
  }

  status(name: string): ServiceStatus {
    return this.supervisor.service(name).status();
  }

  of<Name extends keyof SupervisorEvents>(name: Name): SupervisorEvents[Name][0][] {
    return this.told.filter((each) => each.name === name).map(({ event }) => event as never);
  }

  /** The event of this number, counted from 1. */
  event<Name extends keyof SupervisorEvents>(name: Name, number = 1) {
    return until(
      `event ${number} of ${name}`,
      () => this.of(name)[number - 1],
      () => this.story(),
    );
  }

  phase(name: string, phase: ServicePhase): Promise<ServiceStatus> {
    return until(
      `${name} to be ${phase}`,
      () => {
        const status = this.status(name);
        return status.phase === phase ? status : null;
      },
      () => `${JSON.stringify(this.supervisor.services())}\n${this.story()}`,
    );
  }

  /**
   * Once a service runs and has written into this file, which a shell creates before it writes. A
   * process may write it before its supervisor is told that it was started.
   */
  async wrote(file: string, name = 'web'): Promise<ServiceStatus> {
    const size = () => statSync(this.path(file), { throwIfNoEntry: false })?.size ?? 0;
    await until(`${name} to write ${file}`, () => size() > 0);
    return this.phase(name, 'running');
  }

  story(): string {
    return this.told.map(({ name, event }) => `${name} ${JSON.stringify(event, short)}`).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.supervisor.close();
    this.supervisor = this.#create(new TestClock());
    await this.supervisor.start();
    await this.supervisor.stopAll({ graceMs: 1 });
    await this.supervisor.apply([]);
    await until('nothing to be left', () => this.supervisor.services().length === 0);
    await this.supervisor.close();
    await forgetAll(this.stateDir);
    rmSync(this.stateDir, { recursive: true, force: true });
  }

  #create(clock = this.clock): Supervisor {
    const supervisor = new Supervisor({ clock, ...this.#more, stateDir: this.stateDir });
    for (const name of EVENTS) {
      supervisor.on(name, (event: unknown) => {
        this.told.push({ name, event } as Told);
      });
    }
    return supervisor;
  }
}

function short(name: string, value: unknown): unknown {
  if (value instanceof Error) return value.message;
  return name === 'identity' || name === 'evidence' ? undefined : value;
}

/** Ends on SIGTERM. */
export const sleeper = (name: string, more: Partial<ServiceSpec> = {}): ServiceSpec => ({
  name,
  command: 'sleep',
  args: ['1000'],
  ...more,
});

/** Runs a script in a shell. */
export const shell = (
  name: string,
  script: string,
  more: Partial<ServiceSpec> = {},
): ServiceSpec => ({ name, command: 'sh', args: ['-c', script], ...more });

/**
 * The arguments or the environment of a process that runs. It has none for a moment when it has just
 * become another program.
 */
export function textOf(pid: number | null, file: 'cmdline' | 'environ'): Promise<string> {
  return until(`the ${file} of ${pid}`, () => {
    const text = readFileSync(`/proc/${pid}/${file}`, 'latin1');
    return text !== '' && text;
  });
}

/** Whether a process is there and not a zombie. Of one that is not known, nobody can say. */
export function isRunning(pid: number | null | undefined): boolean {
  if (pid == null || pid <= 0) throw new Error(`no process has the pid ${pid}`);
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
