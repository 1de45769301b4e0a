import type { ExitwatchError } from '../../common/errors.js';
import type { KeeperRun } from '../keeper/keeper-run.js';

import { boot } from './boot.js';
import type { LiveRun } from './live-run.js';
import { RunEnding } from './run-ending.js';
import { RunStart } from './run-start.js';
import { askedToStop } from './restart-policy.js';
import { noService } from './service-errors.js';
import { newRecord } from './service-record.js';
import { NEVER, type ServiceState } from './service-state.js';

/** What a service does next, by what it shall be and what it is. */
export class ServiceSteps {
  readonly #state: ServiceState;
  readonly #start: RunStart;
  readonly #ending: RunEnding;

  constructor(state: ServiceState) {
    this.#state = state;
    this.#ending = new RunEnding(state);
    this.#start = new RunStart(state, this.#ending);
  }

  /** Takes over what runs. */
  adopt(): void {
    const record = this.#state.record;
    // Not by that of the record, which is of its last start.
    const { stopped } = record;
    if (stopped?.until === 'reboot' && stopped.bootId !== boot()) record.stopped = null;
    if (record.bootId !== boot()) {
      // What a judge has said of the last run holds: a machine that its user has shut down stays off.
      if (this.#state.host.judgeOf(this.#state.policy) === null) record.rest = null;
      record.attempts = 0;
      record.dueAtMs = 0; // by a clock that began anew
    }
    const live = this.#state.live;
    // Whether it came to that, its keeper knows: it is asked again.
    if (live !== null) live.isPauseDue = live.isPaused;
    const run = live === null ? null : this.#state.host.runs.run(live.stored.id);
    if (live !== null && run?.identity != null && isBegun(run)) {
      live.isStarted = true;
      live.startedAtMs = this.#state.host.clock.now() - (run.livedMs ?? 0);
      live.stored.identity = run.identity;
      if (run.state === 'running') {
        this.#state.host.emit('adopted', this.#state.eventOf(live));
        this.#start.beginHealth(live, run);
      }
    }
    const requested = this.#state.goal === 'gone' || this.#state.goal === 'down';
    const isDone = live === null && this.#state.goal !== 'up' && this.#state.goal !== 'gone';
    this.#state.termination = { requested, started: isDone, terminated: isDone, finished: isDone };
    this.#state.loop.wake();
  }

  cancelLaunch(): void {
    this.#start.cancel();
  }

  /** A shorter grace counts, also for a stop that is under way; a longer one does not. */
  shorten(graceMs: number | undefined): void {
    this.#ending.shorten(graceMs);
  }

  async take(): Promise<void> {
    const live = this.#state.live;
    this.#state.awaitTurn([]);
    if (live === null) {
      const { goal } = this.#state;
      if (goal === 'gone') this.#finish();
      else if (goal === 'up') await this.#start.begin();
      else this.#rest();
      return;
    }
    if (!live.isStarted) {
      await this.#start.goOn(live);
      return;
    }
    const run = this.#state.host.runs.run(live.stored.id);
    // Only an earlier boot, or somebody who has removed files of the keeper, makes it unknown.
    const isLost = run === null || run.state === 'failed' || run.identity === null;
    if (live.exit === null && isLost && run?.state !== 'running') {
      await this.#ending.lose(live);
    }
    if (live.exit !== null) {
      await this.#ending.settle(live);
      return;
    }
    const purpose = this.#state.purposeOfEnd(live);
    if (purpose !== null) {
      const isTurn = purpose !== 'stop' || live.isStopping || !this.#isBeforeItsTurn();
      if (!live.isGone && isTurn) await this.#ending.terminate(live, purpose);
    } else if (run?.state === 'ended') {
      this.#ending.expectEnd(live, run);
    } else if (this.#state.wantsPaused !== live.isPaused || live.isPauseDue) {
      await this.#pause(live, this.#state.wantsPaused);
    }
  }

  /** What starts after it is stopped before it. */
  #isBeforeItsTurn(): boolean {
    return this.#state.awaitTurn(this.#state.host.order.stopBlockers(this.#state));
  }

  /** Nothing runs, and nothing is started. */
  #rest(): void {
    if (this.#state.termination.finished) return;
    const { requested } = this.#state.termination;
    this.#state.termination = { requested, started: true, terminated: true, finished: true };
    const because = this.#whyAtRest();
    this.#state.host.emit('stopped', {
      service: this.#state.name,
      phase: this.#state.phase,
      because,
    });
  }

  #whyAtRest(): string {
    const { lastEnd, rest, stopped } = this.#state.record;
    // What is said of a run that was stopped is the same, unless that was another stop.
    const isSaid = lastEnd?.reason === 'stop' && lastEnd.because.includes(stopped?.why ?? '');
    if (this.#state.goal === 'down' && !isSaid) return askedToStop(stopped?.why);
    const failure = rest === 'failed' ? (this.#state.lastError?.message ?? null) : null;
    return failure ?? lastEnd?.because ?? askedToStop();
  }

  #finish(): void {
    const record = this.#state.record;
    this.#state.termination = { requested: true, started: true, terminated: true, finished: true };
    if (record.next === null) {
      this.#state.host.store.remove(record);
      this.#state.loop.end();
      const because = 'it was removed';
      this.#state.host.emit('stopped', { service: this.#state.name, phase: 'removed', because });
      this.#state.host.onFinished(this.#state.name);
      this.#state.moved();
      this.#state.waiters.rejectAll(noService(this.#state.name));
      return;
    }
    // Another service of the same name: it knows nothing of this one, but who stopped it meant it.
    this.#state.record = { ...newRecord(record.next), stopped: record.stopped };
    this.#state.spec = this.#state.nextSpec;
    this.#state.nextSpec = null;
    this.#state.record.dueAtMs = 0;
    this.#state.lastError = null;
    this.#state.host.countRestart('created-again');
    this.#state.save();
    this.#state.termination = NEVER;
    this.#state.loop.wake();
  }

  async #pause(live: LiveRun, isPaused: boolean): Promise<void> {
    const { runs } = this.#state.host;
    const { id } = live.stored;
    // What is on disk is what must be undone: paused before it is, running after it is.
    try {
      if (isPaused) {
        live.stored.isPaused = true;
        this.#state.save();
      }
      await (isPaused ? runs.pause(id) : runs.resume(id));
    } catch (error) {
      if ((error as ExitwatchError).code === 'ERR_EXITWATCH_KEEPER') throw error; // tried again
      live.moveError = error as ExitwatchError;
      live.isPauseDue = false;
      this.#state.wantsPaused = !isPaused;
      live.stored.isPaused = !isPaused;
      this.#state.save();
      return;
    }
    live.isPaused = isPaused;
    live.health?.setPaused(isPaused);
    live.stored.isPaused = isPaused;
    live.isPauseDue = true; // until that is on disk
    this.#state.save();
    live.isPauseDue = false;
    this.#state.loop.wake();
  }
}

const isBegun = ({ state }: KeeperRun) => state === 'running' || state === 'ended';
