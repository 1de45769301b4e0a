// One idea: the end of a run, from the first request to what is left of it.
import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { unknownExit } from '../../events/unknown-exit.js';
import { pidNamespace, startOf } from '../../identity/process-identity.js';
import { isAlive } from '../../process/liveness.js';
import { removePidfile } from '../../process/pidfile.js';
import { stop as stopProcess } from '../../process/stop.js';
import type { KeeperRun } from '../keeper/keeper-run.js';
import { exitBefore, exitOf } from '../keeper/run-exit.js';
import { isOver } from '../keeper/stop-run.js';

import { boot } from './boot.js';
import { account, attemptsAfter } from './account.js';
import { Backoff } from './backoff.js';
import type { LiveRun } from './live-run.js';
import {
  afterReboot,
  decideByJudge,
  decideRestart,
  isAfter,
  type Judgement,
  type RestartDecision,
  type StopIntent,
  type StopPurpose,
} from './restart-policy.js';
import { DEFAULT_COMMAND_MS, runCommand } from './run-command.js';
import { survivedError } from './service-errors.js';
import type { ServiceState } from './service-state.js';

/** Longer than a keeper waits for what the monitor saw. */
const OVERDUE_MS = 5000;

/** How a run ends: it is stopped, or its end is seen; what follows is decided, told and stored. */
export class RunEnding {
  readonly #state: ServiceState;
  /** By the clock: when somebody asked for a grace of their own. */
  #graceAskedAtMs = 0;

  constructor(state: ServiceState) {
    this.#state = state;
  }

  async terminate(live: LiveRun, purpose: StopPurpose): Promise<void> {
    const { runs, clock } = this.#state.host;
    const { id } = live.stored;
    try {
      this.intend(live, purpose);
    } catch (error) {
      if (!this.#state.isHeld) throw error; // nobody needs to know that later
      this.#state.warn(error);
      live.isStopping = true;
    }
    live.health?.end();
    this.#state.moved();
    const began = clock.now();
    await this.#control(live);
    if (this.#state.isAbandoned) return;
    // Who asks for a grace of their own means all of the stop from then on.
    const tookMs = clock.now() - Math.max(began, this.#graceAskedAtMs);
    const own = this.#state.graceMs === null ? null : this.#state.graceMs - tookMs;
    const graceMs = Math.max(1, Math.ceil(own ?? this.#state.specGraceMs));
    const { asking } = this.#state;
    const { isGone, left } = await runs.stop(id, { ...asking, graceMs }).catch((error: unknown) => {
      const { code } = error as ExitwatchError;
      if (code === 'ERR_EXITWATCH_NO_RUN') return { isGone: true, left: [] };
      if (code !== 'ERR_EXITWATCH_KEEPER') this.#stopFailed();
      throw error;
    });
    live.isGone = isGone;
    this.#state.hasSurvivors = !isGone;
    if (isGone) {
      this.#state.loop.wake();
      return;
    }
    throw survivedError(this.#state.name, left);
  }

  /** On record before the first signal. If it cannot be stored, nothing has changed. */
  intend(live: LiveRun, purpose: StopPurpose): void {
    const { intent } = live.stored;
    if (intent?.purpose !== purpose) {
      const why = this.#whyOf(live, purpose);
      // It may end because of what was asked first.
      live.stored.intent = { purpose, at: intent?.at ?? new Date().toISOString(), why };
    }
    try {
      this.#state.save();
    } catch (error) {
      live.stored.intent = intent;
      throw error;
    }
    live.isStopping = true;
    this.#state.termination = { ...this.#state.termination, started: true };
  }

  /** What was said by whoever asked for it. */
  #whyOf(live: LiveRun, purpose: StopPurpose): string | null {
    if (purpose === 'health') return live.unhealthy;
    if (purpose === 'stop') return this.#state.record.stopped?.why ?? null;
    return this.#state.isAskedToRestart(live) ? this.#state.restartWhy : null;
  }

  /** A shorter grace counts, also for a stop that is under way; a longer one does not. */
  shorten(graceMs: number | undefined): void {
    if (graceMs === undefined) return;
    const shorter = Math.max(1, graceMs);
    const live = this.#state.live;
    const isNew = live?.isStopping !== true && this.#state.graceMs === null;
    if (!isNew && shorter >= (this.#state.graceMs ?? this.#state.specGraceMs)) return;
    this.#state.graceMs = shorter;
    this.#graceAskedAtMs = this.#state.host.clock.now();
    if (live?.isStopping !== true) return;
    live.control.abort();
    // It may be the first one, if the control command was still running.
    const stop = { ...this.#state.asking, graceMs: shorter };
    this.#state.host.runs.stop(live.stored.id, stop).catch(() => undefined);
  }

  /** Its process has ended: decides, tells, and clears away what it has left. */
  async settle(live: LiveRun): Promise<void> {
    const { runs } = this.#state.host;
    const exit = live.exit;
    if (exit === null) return;
    const { id } = live.stored;
    if (live.decision === null) {
      const judgement = await this.#judge(live, exit);
      if (this.#state.isAbandoned) return;
      live.decision = this.#decide(live, exit, judgement);
      live.decidedAt = this.#state.demands;
      live.health?.end();
      this.#state.host.emit('exit', {
        ...exit,
        service: this.#state.name,
        run: id,
        decision: live.decision,
      });
    }
    const run = runs.run(id);
    if (run !== null && !isOver(run)) await this.#clear(live);
    if (this.#state.isAbandoned) return;
    const { decision } = live;
    await this.#removePidfile(live);
    this.#state.record.lastEnd = {
      run: id,
      how: exit.how,
      exitCode: exit.exitCode,
      signal: exit.signal,
      at: exit.exitedAt.toISOString(),
      reason: decision.reason,
      because: decision.because,
    };
    this.#state.graceMs = null;
    this.#state.termination = {
      ...this.#state.termination,
      terminated: this.#state.termination.requested,
    };
    // On disk before the keeper forgets it: otherwise nobody would know the end.
    this.#state.drop(() => {
      account(this.#state, live, exit, decision);
    });
    if (run !== null) {
      await runs.forget(id).catch((error: unknown) => {
        if ((error as ExitwatchError).code !== 'ERR_EXITWATCH_NO_RUN') this.#state.warn(error);
      });
    }
    this.#state.loop.wake();
  }

  /** Its end is told once it is joined with what the monitor saw; if not, the status is enough. */
  expectEnd(live: LiveRun, run: KeeperRun): void {
    const now = this.#state.host.clock.now();
    live.overdueSinceMs ??= now;
    const leftMs = live.overdueSinceMs + OVERDUE_MS - now;
    if (leftMs > 0) {
      this.#state.loop.wakeIn(leftMs);
      return;
    }
    live.exit = exitOf(run, false);
    live.livedMs = run.livedMs;
    this.#state.loop.wake();
  }

  /** Nobody knows the run any more: how it ended is unknown, and what is left of it is stopped. */
  async lose(live: LiveRun): Promise<void> {
    const { identity } = live.stored;
    const run = this.#state.host.runs.run(live.stored.id);
    live.exit ??= exitBefore(run, identity);
    live.livedMs ??= run?.livedMs ?? null;
    // Nobody can look into a pid namespace of before, whose processes ended with its init.
    const isHere = identity?.pidNamespace === pidNamespace();
    if (isHere && isAlive(identity) !== 'dead') {
      const { signal } = this.#state.asking;
      const { outcome } = await stopProcess(identity, {
        killSignal: signal,
        forceKillAfterDelayMs: Math.max(1, this.#state.specGraceMs),
        tree: true,
      });
      if (outcome === 'timed-out') {
        this.#stopFailed();
        throw survivedError(this.#state.name, [identity]);
      }
    }
    const startedAt = identity === null ? null : startOf(identity);
    live.exit ??= unknownExit(
      {
        id: identity?.id ?? live.stored.id,
        pid: identity?.pid ?? 0,
        startedAt,
        exitedAt: new Date(),
        uncertaintyMs: Math.max(1, Date.now() - (startedAt?.getTime() ?? 0)),
        source: this.#state.host.runs.source ?? 'keeper',
      },
      'gone-while-unobserved',
    );
  }

  /** Takes at most half of a grace that somebody has asked for. */
  async #control(live: LiveRun): Promise<void> {
    const { stop = {}, cwd } = this.#state.policy;
    const { control } = stop;
    if (control === undefined || live.control.signal.aborted || live.exit !== null) return;
    const { clock } = this.#state.host;
    const env = { MAINPID: String(live.stored.identity?.pid ?? '') };
    const { timeoutMs = DEFAULT_COMMAND_MS } = control;
    const most = Math.ceil(Math.min(timeoutMs, (this.#state.graceMs ?? Infinity) / 2));
    const command = { ...control, timeoutMs: most };
    const failure = await runCommand(command, { env, cwd }, clock, live.control.signal);
    if (failure !== null) {
      const detail = `the control command ${failure}`;
      this.#state.warn(new ExitwatchError('ERR_EXITWATCH_CONTROL', detail));
    }
    live.control.abort(); // once only
  }

  /** Not of what we ended ourselves. */
  async #judge(live: LiveRun, exit: ExitEvent): Promise<Judgement | null> {
    const judge = this.#state.host.judgeOf(this.#state.policy);
    const { intent } = live.stored;
    const isOurs = intent !== null && !isAfter(intent, exit);
    if (judge === null || isOurs || this.#state.goal !== 'up') return null;
    return judge(exit, live.stored.identity);
  }

  #decide(live: LiveRun, exit: ExitEvent, judgement: Judgement | null): RestartDecision {
    const spec = this.#state.policy;
    const { restart = 'unless-asked', successExitCodes = [0], askedBy = [] } = spec;
    const rules = { restart, successExitCodes, askedBy, onUnknown: spec.onUnknown ?? 'restart' };
    const { intent } = live.stored;
    // What was asked last counts, also if it ended by itself before it was signalled.
    if (this.#state.goal !== 'up') return decideRestart(rules, exit, this.#intentOf(live, 'stop'));
    const isAfterBoot = this.#state.record.bootId !== boot();
    if (isAfterBoot && judgement?.restart !== false) return afterReboot(exit, intent);
    const again = decideRestart(rules, exit, this.#intentOf(live, 'restart'));
    if (this.#state.isAskedToRestart(live)) return again;
    if (intent?.purpose === 'stop' && !isAfter(intent, exit)) {
      return { ...again, because: 'we were stopping it, and now it is to run again' };
    }
    if (this.#state.isReplaced(live)) return { ...again, because: 'its description has changed' };
    const own = decideRestart(rules, exit, intent);
    const isOurs = judgement === null || own.evidence.intent !== null;
    const decision = isOurs ? own : decideByJudge(rules, exit, judgement);
    const attempts = attemptsAfter(this.#state, live, exit);
    const isLast = new Backoff(spec.backoff).isLast(attempts);
    if (!decision.restart || !isLast || decision.reason === 'restart') return decision;
    const because = `${decision.because}; it was started ${attempts} times in a row`;
    return { ...decision, restart: false, reason: 'gave-up', because };
  }

  /** What was asked, on record or a moment ago, and by whom. */
  #intentOf(live: LiveRun, purpose: 'stop' | 'restart'): StopIntent {
    const { intent } = live.stored;
    if (intent?.purpose === purpose) return intent;
    return { purpose, at: intent?.at ?? new Date().toISOString(), why: this.#whyOf(live, purpose) };
  }

  /** Ends what the process has left behind. */
  async #clear(live: LiveRun): Promise<void> {
    const { signal } = this.#state.asking;
    const graceMs = Math.max(1, this.#state.graceMs ?? this.#state.specGraceMs);
    live.isStopping = true;
    this.#state.moved();
    const { id } = live.stored;
    const { isGone, left } = await this.#state.host.runs.stop(id, { signal, graceMs });
    if (isGone) return;
    this.#stopFailed();
    throw survivedError(this.#state.name, left);
  }

  /** What waits for its end does not wait for ever. */
  #stopFailed(): void {
    this.#state.hasSurvivors = true;
    this.#state.moved();
  }

  async #removePidfile(live: LiveRun): Promise<void> {
    // Not that of the service, which may have another one by now.
    const { identity, pidfile } = live.stored;
    if (pidfile === null || identity === null) return;
    await removePidfile(pidfile, identity).catch((error: unknown) => {
      this.#state.warn(error);
    });
  }
}
