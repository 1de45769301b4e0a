import { LATE, withDeadline } from '../../common/deadline.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { ExitMonitor } from '../../monitor/exit-monitor.js';
import type { ExitWatch } from '../../monitor/exit-watch.js';

import { keeperError } from './connection.js';
import { checkAnswer, closedError } from './keeper-errors.js';
import type { KeeperEvents } from './keeper-events.js';
import { type KeeperRun, runOf } from './keeper-run.js';
import type { Message } from './message.js';
import { exitOf, joinExit } from './run-exit.js';
import { isOver } from './stop-run.js';

const SEEN_WITHIN_MS = 1000;

interface Starting {
  resolve: (run: KeeperRun) => void;
  reject: (error: Error) => void;
}

/** Tells an event of a {@link Keeper}. */
export type Tell = <Name extends keyof KeeperEvents>(
  name: Name,
  ...args: KeeperEvents[Name]
) => void;

/** The runs of a keeper, as far as it has told of them. */
export class RunTable {
  readonly #monitor: ExitMonitor | null;
  readonly #tell: Tell;
  readonly #onGone: (id: string) => void;
  readonly #runs = new Map<string, KeeperRun>();
  readonly #watches = new Map<string, ExitWatch>();
  /** Who waits for another caller's start. */
  readonly #starting = new Map<string, Starting[]>();
  /** Runs whose end was told, or is being joined with what the monitor saw. */
  readonly #ends = new Map<string, 'joining' | 'told'>();

  /** @param onGone called when nothing of a run is left, before that is told */
  constructor(monitor: ExitMonitor | null, tell: Tell, onGone: (id: string) => void) {
    this.#monitor = monitor;
    this.#tell = tell;
    this.#onGone = onGone;
  }

  all(): KeeperRun[] {
    return [...this.#runs.values()];
  }

  get(id: string): KeeperRun | null {
    return this.#runs.get(id) ?? null;
  }

  /** A watch that outlives its monitor stays: who opens the keeper next learns what it has seen meanwhile. */
  close(): void {
    for (const watch of this.#watches.values()) {
      if (watch.id === null) watch.close();
      else this.#monitor?.handBack(watch);
    }
    this.#watches.clear();
    for (const { reject } of [...this.#starting.values()].flat()) reject(closedError());
    this.#starting.clear();
  }

  takeList(items: readonly Message[]): void {
    const gone = new Set(this.#runs.keys());
    for (const message of items) {
      gone.delete(message.text('run') ?? '');
      const wasOver = isOver(this.get(message.text('run') ?? ''), false);
      const run = this.take(message);
      const isNews = run.state === 'ended' && !this.#ends.has(run.id);
      if (run.state === 'running' || isNews) this.#watch(run);
      if (isNews) this.#onEnded(run, true);
      else if (isOver(run) && !wasOver) this.#onEmpty(run);
    }
    for (const id of gone) this.drop(id);
  }

  take(message: Message): KeeperRun {
    checkAnswer(message, message.text('run') ?? '');
    const run = runOf(message, this.#runs.get(message.text('run') ?? ''));
    this.#runs.set(run.id, run);
    if (run.state !== 'starting') {
      for (const { resolve } of this.#starting.get(run.id) ?? []) resolve(run);
      this.#starting.delete(run.id);
    }
    return run;
  }

  started(id: string): Promise<KeeperRun> {
    return new Promise((resolve, reject) => {
      this.#starting.set(id, [...(this.#starting.get(id) ?? []), { resolve, reject }]);
    });
  }

  onEvent(message: Message): void {
    const run = this.take(message);
    switch (message.text('event')) {
      case 'started':
        this.#watch(run);
        this.#tell('started', run);
        break;
      case 'ended':
        if (run.state === 'ended') this.#onEnded(run, false);
        else this.#onEmpty(run);
        break;
      case 'empty':
        this.#onEmpty(run);
        break;
      case 'notify':
        this.#tell('notify', run, message.text('notify') ?? '');
        break;
      default: // of a newer keeper
    }
  }

  #onEnded(run: KeeperRun, isRepeated: boolean): void {
    const kept = exitOf(run, isRepeated);
    if (kept === null) {
      this.#ends.set(run.id, 'told');
      if (isOver(run)) this.#onEmpty(run);
      return;
    }
    this.#ends.set(run.id, 'joining');
    if (isOver(run)) this.#onGone(run.id);
    void this.#seen(run.id).then((seen) => {
      if (this.#ends.get(run.id) !== 'joining') return; // it was forgotten
      this.#ends.set(run.id, 'told');
      const exit = joinExit(kept, seen);
      this.#tell('ended', exit, run);
      const now = this.#runs.get(run.id) ?? run;
      if (isOver(now)) this.#tell('empty', now);
    });
  }

  #onEmpty(run: KeeperRun): void {
    this.#onGone(run.id);
    // Otherwise it follows `ended`, which may come with the list only.
    if (this.#ends.get(run.id) === 'told') this.#tell('empty', run);
  }

  #watch(run: KeeperRun): void {
    if (this.#monitor === null || run.identity === null || this.#watches.has(run.id)) return;
    const key = `run:${run.id}`;
    try {
      const restored = this.#monitor.takeRestored({ identity: run.identity, key });
      if (restored === null && run.state !== 'running') return;
      this.#watches.set(run.id, restored ?? this.#monitor.watch(run.identity, { key }));
    } catch {
      // The monitor is closed, or has no room: the keeper's status remains.
    }
  }

  /** What the monitor saw of its end; it may come a moment after the keeper's message. */
  async #seen(id: string): Promise<ExitEvent | null> {
    const watch = this.#watches.get(id);
    if (watch === undefined) return null;
    const seen = await withDeadline(watch.exited, SEEN_WITHIN_MS).catch(() => null);
    return seen === LATE ? null : seen;
  }

  drop(id: string): void {
    this.#runs.delete(id);
    // The next keeper does not know it, and so it was not executed.
    for (const { reject } of this.#starting.get(id) ?? [])
      reject(keeperError('the start was lost'));
    this.#starting.delete(id);
    this.#ends.delete(id);
    this.unwatch(id);
  }

  unwatch(id: string): void {
    this.#watches.get(id)?.close();
    this.#watches.delete(id);
  }
}
