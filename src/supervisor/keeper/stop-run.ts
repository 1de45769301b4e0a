import type { ExitwatchError } from '../../common/errors.js';
import {
  LONGEST_MS,
  checkMilliseconds,
  checkOptionNames,
  checkOneOf,
  invalidOption,
} from '../../common/options.js';
import { signalNumber, type SignalName } from '../../events/wait-status.js';

import type { KeeperRun } from './keeper-run.js';

/**
 * How {@link Keeper.stop} stops a run.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type StopRunOptions = {
  /** Asks it to end; default `'SIGTERM'`. `'SIGKILL'` does not ask. */
  signal?: SignalName;
  /** `'main'`: only its own process is asked, not those that it has started. Default `'tree'`. */
  ask?: 'tree' | 'main';
  /** How long it may take to end before all of it is killed, in ms; default 5,000. */
  graceMs?: number;
  /** How long to wait after that until nothing of it is left, in ms; default 5,000. */
  confirmMs?: number;
};

/**
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type StoppedRun = {
  id: string;
  /**
   * Nothing of it is left. `false`: what is in `left` survived SIGKILL until now, for example because
   * it waits for a disk that does not answer. The keeper goes on trying.
   */
  isGone: boolean;
  /** SIGKILL was sent. */
  wasKilled: boolean;
  left: RunMember[];
};

/**
 * A process of a run.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type RunMember = {
  pid: number;
  /** Its start in clock ticks, as in `ProcessIdentity`. */
  startTicks: number;
  /**
   * As in proc_pid_stat(5): `'D'` waits in the kernel, where no signal reaches it. `'?'`: /proc hides
   * the process from its keeper (`hidepid`), and so its start (0).
   */
  state: string;
};

const DEFAULT_MS = 5000;

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkStopRunOptions(options: StopRunOptions): Required<StopRunOptions> {
  checkOptionNames(options, ['signal', 'ask', 'graceMs', 'confirmMs']);
  const {
    signal = 'SIGTERM',
    ask = 'tree',
    graceMs = DEFAULT_MS,
    confirmMs = DEFAULT_MS,
  } = options;
  checkSignalName(signal);
  checkOneOf('ask', ask, ['tree', 'main']);
  checkMilliseconds('graceMs', graceMs);
  checkMilliseconds('confirmMs', confirmMs);
  return { signal, ask, graceMs, confirmMs };
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkSignalName(signal: unknown): asserts signal is SignalName {
  const number = typeof signal === 'string' ? signalNumber(signal as SignalName) : 0;
  if (number > 0 && number <= 64) return;
  throw invalidOption('signal must be the name of a signal, such as "SIGTERM"');
}

/** What a stop asks of the keeper. */
export interface StopHost {
  signal(id: string, signal: SignalName, tree: boolean): Promise<boolean>;
  resume(id: string): Promise<boolean>;
  kill(id: string): Promise<void>;
  look(id: string): Promise<{ isOver: boolean; left: RunMember[] }>;
  run(id: string): KeeperRun | null;
}

/** Nothing of it can be running. */
export const isOver = (run: KeeperRun | null, ifMissing = true) =>
  run === null ? ifMissing : (run.state === 'ended' || run.state === 'failed') && !run.hasMembers;

/** One stop of one run, which later callers join. */
export class RunStop {
  readonly finished: Promise<StoppedRun>;
  readonly #host: StopHost;
  readonly #id: string;
  #killAt = Infinity;
  #timer: NodeJS.Timeout | undefined;
  #onDue: (() => void) | undefined;
  #isOver = false;
  #isKilling = false;
  #abandoned: ExitwatchError | null = null;
  /** Why it could not be asked. */
  #refusal: ExitwatchError | null = null;

  constructor(host: StopHost, id: string, options: Required<StopRunOptions>) {
    this.#host = host;
    this.#id = id;
    this.finished = this.#stop(options);
  }

  /** A shorter grace counts, a longer one does not. */
  shorten(graceMs: number): void {
    const at = performance.now() + graceMs;
    if (this.#isKilling || at >= this.#killAt) return;
    this.#killAt = at;
    this.#arm();
  }

  /** Nobody waits for it any more. */
  abandon(error: ExitwatchError): void {
    this.#abandoned = error;
    this.#onDue?.();
  }

  /** Its keeper told that nothing of the run is left. */
  noteGone(): void {
    this.#isOver = true;
    this.#onDue?.();
  }

  async #stop({ signal, ask, graceMs, confirmMs }: Required<StopRunOptions>): Promise<StoppedRun> {
    let wasKilled = false;
    this.#isOver = isOver(this.#host.run(this.#id));
    this.#killAt = performance.now() + graceMs;
    try {
      if (!this.#isOver && signal !== 'SIGKILL') {
        await this.#ask(signal, ask);
        await this.#due();
      }
      if (!this.#isOver) {
        wasKilled = true;
        this.#isKilling = true;
        await this.#host.kill(this.#id);
        this.#killAt = performance.now() + confirmMs;
        await this.#due();
      }
      // Not that nobody is seen, but what its keeper says: it may be all that it can see.
      const { isOver: isGone, left } = this.#isOver
        ? { isOver: true, left: [] }
        : await this.#host.look(this.#id);
      if (!isGone && this.#refusal !== null) throw this.#refusal;
      return { id: this.#id, isGone, wasKilled, left };
    } catch (error) {
      if (this.#abandoned !== null) throw this.#abandoned;
      // A start that we have interrupted was forgotten: its keeper does that when nothing is left.
      if ((error as { code?: unknown }).code !== 'ERR_EXITWATCH_NO_RUN') throw error;
      return { id: this.#id, isGone: true, wasKilled, left: [] };
    }
  }

  /** What may not be asked, such as a set-user-ID program, may be killed all the same: by its cgroup. */
  async #ask(signal: SignalName, ask: 'tree' | 'main'): Promise<void> {
    try {
      await this.#host.signal(this.#id, signal, ask === 'tree');
      await this.#host.resume(this.#id); // a process that is stopped takes no other signal
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_EXITWATCH_NOT_PERMITTED') throw error;
      this.#refusal = error as ExitwatchError;
    }
  }

  /** Resolves when the time is up, or nothing is left. */
  async #due(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onDue = () => {
        clearTimeout(this.#timer);
        this.#onDue = undefined;
        resolve();
      };
      if (this.#isOver || this.#abandoned !== null) this.#onDue();
      else this.#arm();
    });
    if (this.#abandoned !== null) throw this.#abandoned;
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const left = Math.min(LONGEST_MS, Math.max(0, this.#killAt - performance.now()));
    this.#timer = setTimeout(() => this.#onDue?.(), left);
  }
}
