import type { ExitEvent } from '../../src';

import { KERNEL } from './kernel';
import { LineProcess, program } from './programs';

/** The deaths in test/programs/deaths.c, with the wait status that each must have. */
export const DEATHS = {
  'exit-0': 0,
  'exit-7': 7 << 8,
  'exit-255': 255 << 8,
  sigkill: 9,
  sigterm: 15,
  'real-time': 37,
  fault: 11,
  'fault-core': 11 | 0x80,
  abort: 6,
  'exit-group-32': 7 << 8,
  'exit-0-32': 0,
  'worker-exits': 7 << 8,
  'leader-first': 7 << 8,
  'leader-first-briefly': 7 << 8,
  'leader-first-slowly': 7 << 8,
  'leader-first-returns': 0,
  'raw-exits': KERNEL.lastThreadsStatus ? 10 << 8 : 5 << 8,
  'leader-first-killed': 9,
  'leader-first-fault-core': 11 | 0x80,
  'threads-killed': 9,
  'threads-termed': 15,
  'worker-fault': 11,
  'worker-fault-core': 11 | 0x80,
  'leader-fault-core': 11 | 0x80,
  'worker-execs': 4 << 8,
  'worker-execs-briefly': 4 << 8,
  'leader-first-execs': 4 << 8,
} as const;

export type DeathName = keyof typeof DEATHS;

export const DEATH_NAMES = Object.keys(DEATHS) as DeathName[];

/** The first thread ends by itself while another one ends the process. */
export const ENDS_BESIDE_ITS_FIRST: ReadonlySet<DeathName> = new Set([
  'leader-first-briefly',
  'leader-first-slowly',
] as const);

/** If threads leave one by one, their messages do not show which code is the status. */
export const HAVE_CODES_OF_THEIR_OWN: ReadonlySet<DeathName> = new Set([
  'raw-exits',
  ...ENDS_BESIDE_ITS_FIRST,
] as const);

export interface Death {
  name: DeathName;
  pid: number;
  /** The status from waitpid; -1 if no process waited. */
  status: number;
  /** CLOCK_MONOTONIC, before it existed. */
  spawnedNs: number;
  /** CLOCK_MONOTONIC, when its last thread still lived. */
  aliveNs: number;
  /** CLOCK_MONOTONIC, when its death was known. */
  deadNs: number;
}

/**
 * The exit of a thread gets its timestamp after its parent can see it: microseconds later, or
 * longer if the thread is preempted in between. On an emulated machine the CPU is preempted as
 * well.
 */
export const LATE_STAMP_NS = process.env['EXITWATCH_EMULATED'] === undefined ? 100e6 : 2e9;

/** A later timestamp than this belongs to another process, which has the pid by then. */
const OTHERS_STAMP_NS = 20 * LATE_STAMP_NS;

/**
 * Whether an event reports this death: other processes may have had the pid before, and may get it
 * again.
 */
export function isEndOf(death: Death, event: ExitEvent): boolean {
  const clockNs = Date.now() * 1e6 - Number(process.hrtime.bigint());
  const atNs = event.exitedNs ?? new Date(event.exitedAt).getTime() * 1e6 - clockNs;
  const slackNs = event.uncertaintyMs * 1e6 + (event.exitedNs === null ? 2e6 : 0);
  return (
    event.pid === death.pid &&
    atNs + slackNs >= death.spawnedNs &&
    atNs - slackNs <= death.deadNs + OTHERS_STAMP_NS
  );
}

export type Reap = 'now' | 'late' | 'ignore';

/** Children that wait to die, each in its own way. */
export class DyingProcesses {
  readonly #process: LineProcess;
  readonly #spawned = new Map<number, { name: DeathName; spawnedNs: number }>();

  private constructor(names: readonly DeathName[], reap: Reap) {
    this.#process = new LineProcess(program('deaths'), ['--hold', '--reap', reap, ...names]);
  }

  static async spawn(names: readonly DeathName[], reap: Reap): Promise<DyingProcesses> {
    const dying = new DyingProcesses(names, reap);
    for (const name of names) {
      const [, pid, , spawnedNs] = ((await dying.#process.line()) ?? '').split(' ').map(Number);
      dying.#spawned.set(pid ?? 0, { name, spawnedNs: spawnedNs ?? 0 });
    }
    return dying;
  }

  get pids(): number[] {
    return [...this.#spawned.keys()];
  }

  /** Lets them go. Resolves when all are dead. */
  async die(): Promise<Death[]> {
    this.#process.child.stdin.write('die\n');
    const deaths = (await this.#process.rest()).map((line) => {
      const [, pid, status, aliveNs, deadNs] = line.split(' ').map(Number);
      const spawned = this.#spawned.get(pid ?? 0);
      if (spawned === undefined) throw new Error(`not one of ours: ${line}`);
      return {
        ...spawned,
        pid: pid ?? 0,
        status: status ?? -1,
        aliveNs: aliveNs ?? 0,
        deadNs: deadNs ?? 0,
      };
    });
    if ((await this.#process.ended) !== 0) throw new Error(this.#process.stderr);
    return deaths;
  }
}
