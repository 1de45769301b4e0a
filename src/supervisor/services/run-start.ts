import type { ExitwatchError } from '../../common/errors.js';
import { isSameProcess } from '../../identity/process-identity.js';
import { readPidfile, removeStalePidfile, writePidfile } from '../../process/pidfile.js';
import type { KeeperRun } from '../keeper/keeper-run.js';

import { delayNext } from './account.js';
import { boot } from './boot.js';
import { runOptions } from './check-spec.js';
import { Health } from './health.js';
import { type LiveRun, newLive } from './live-run.js';
import type { RunEnding } from './run-ending.js';
import { runId } from './service-record.js';
import type { ServiceSpec } from './service-spec.js';
import { NEVER, type ServiceState } from './service-state.js';

/** How a run begins: its id is reserved on disk, and then its keeper is asked. */
export class RunStart {
  readonly #state: ServiceState;
  readonly #ending: RunEnding;

  constructor(state: ServiceState, ending: RunEnding) {
    this.#state = state;
    this.#ending = ending;
  }

  async begin(): Promise<void> {
    if (this.#state.spec === null) return;
    const waitMs = this.#state.waitMs;
    if (waitMs > 0) {
      this.#state.loop.wakeIn(waitMs);
      return;
    }
    if (this.#state.awaitTurn(this.#state.host.order.startBlockers(this.#state))) return;
    const record = this.#state.record;
    record.lastRun++;
    record.attempts++;
    record.dueAtMs = 0;
    record.bootId = boot();
    const reason = record.planned ?? null;
    record.planned = null;
    if (reason !== null) {
      record.restarts++;
      this.#state.host.countRestart(reason);
    }
    const id = runId(record, record.lastRun);
    const { runDigest } = record.stored;
    const { pidfile = null } = this.#state.spec;
    record.run = { id, runDigest, identity: null, isPaused: false, intent: null, pidfile };
    this.#state.live = newLive(record.run, this.#state.generation);
    this.#state.wantsPaused = false;
    this.#state.graceMs = null; // it was for a stop of before
    this.#state.termination = NEVER;
    await this.#launch(this.#state.live, this.#state.spec);
  }

  /** Its id was reserved, and it is not known whether it was started: an id starts only once. */
  async goOn(live: LiveRun): Promise<void> {
    const run = this.#state.host.runs.run(live.stored.id);
    const isWanted =
      this.#state.goal === 'up' && live.stored.runDigest === this.#state.record.stored.runDigest;
    if (isWanted && this.#state.spec !== null && live.stored.identity === null) {
      if (run === null) this.#state.record.bootId = boot(); // it begins now
      await this.#launch(live, this.#state.spec);
    } else if (run !== null && run.state !== 'failed') {
      live.isStarted = true;
      live.stored.identity = run.identity ?? live.stored.identity; // after a boot the keeper has none
      this.#state.loop.wake();
    } else if (live.stored.identity !== null) {
      await this.#ending.lose(live);
      live.isStarted = true;
      this.#state.loop.wake();
    } else {
      if (run !== null) await this.#state.host.runs.forget(run.id);
      const { pidfile } = live.stored;
      if (pidfile !== null) await removeStalePidfile(pidfile).catch(() => undefined);
      this.#state.drop();
      this.#state.loop.wake();
    }
  }

  /** What waits before its exec, for a disk for example, must not keep what was asked since waiting. */
  cancel(): void {
    const live = this.#state.live;
    if (live?.isLaunching !== true || live.isStopping) return;
    const purpose = this.#state.purposeOfEnd(live);
    if (purpose === null) return;
    try {
      this.#ending.intend(live, purpose);
    } catch (error) {
      this.#state.warn(error);
      return;
    }
    const graceMs = Math.max(1, this.#state.graceMs ?? this.#state.specGraceMs);
    const stop = { ...this.#state.asking, graceMs };
    this.#state.host.runs.stop(live.stored.id, stop).catch(() => undefined);
  }

  beginHealth(live: LiveRun, run: KeeperRun): void {
    live.health = new Health(this.#state.policy, run.pid ?? 0, this.#state.host.clock, {
      onReady: () => {
        this.#noteReady(live);
        this.#state.host.emit('ready', this.#state.eventOf(live));
        this.#state.moved();
      },
      onUnhealthy: (why) => {
        live.unhealthy ??= why;
        this.#state.loop.wake();
      },
      heard: () => this.#state.host.runs.ping(),
    });
    const livedMs = this.#state.host.clock.now() - live.startedAtMs;
    const { ready } = this.#state.policy;
    const isTold = ready !== undefined && 'notify' in ready;
    const wasReady = isTold ? run.isReady : live.stored.isReady === true;
    live.health.begin(wasReady, run.aliveAgoMs, livedMs, !run.isLost);
    if (live.isPaused) live.health.setPaused(true);
  }

  /** The next supervisor does not ask again. After a power failure nothing runs, so it is not synced. */
  #noteReady(live: LiveRun): void {
    const { ready } = this.#state.policy;
    const isChecked = ready !== undefined && !('notify' in ready) && !('aliveMs' in ready);
    if (!isChecked || live.stored.isReady === true) return;
    live.stored.isReady = true;
    try {
      this.#state.save(false);
    } catch (error) {
      this.#state.warn(error);
    }
  }

  async #launch(live: LiveRun, spec: ServiceSpec): Promise<void> {
    const { runs, clock } = this.#state.host;
    // Otherwise the next supervisor would take it for an orphan. After a power failure nothing runs.
    this.#state.save(false);
    let run: KeeperRun;
    live.isLaunching = true;
    try {
      run = await runs.start(runOptions(spec, live.stored.id));
    } catch (error) {
      const { code } = error as ExitwatchError;
      // It may have been started: the next step asks again, under the same id.
      if (code === 'ERR_EXITWATCH_KEEPER' || code === 'ERR_EXITWATCH_CLOSED') throw error;
      this.#onStartFailed(live, error as ExitwatchError);
      return;
    } finally {
      live.isLaunching = false;
    }
    live.isStarted = true;
    live.startedAtMs = clock.now();
    live.stored.identity = run.identity;
    this.#state.lastError = null;
    try {
      this.#state.save();
    } catch (error) {
      this.#state.warn(error); // it runs all the same, and its keeper knows it by its id
    }
    this.#state.host.emit('started', this.#state.eventOf(live));
    this.#state.moved();
    if (this.#state.isAbandoned) return;
    if (run.state === 'running') {
      this.beginHealth(live, run);
      await this.#writePidfile(live, spec);
    }
    this.#state.loop.wake();
  }

  #onStartFailed(live: LiveRun, error: ExitwatchError): void {
    if (live.isStopping) {
      this.#state.drop();
      this.#state.loop.wake();
      return;
    }
    this.#state.lastError = error;
    this.#state.failure = error;
    this.#state.warn(error);
    this.#state.drop(() => {
      if (this.#state.goal === 'up') delayNext(this.#state, error.message, 'start-failed');
    });
    this.#state.loop.wake();
  }

  /** Its keeper has done so before its exec, if it could. */
  async #writePidfile(live: LiveRun, { pidfile }: ServiceSpec): Promise<void> {
    const { identity } = live.stored;
    if (pidfile === undefined || identity === null || live.exit !== null) return;
    const found = await readPidfile(pidfile).catch(() => null);
    if (found?.identity != null && isSameProcess(found.identity, identity)) return;
    await writePidfile(pidfile, identity).catch((error: unknown) => {
      this.#state.warn(error);
    });
  }
}
