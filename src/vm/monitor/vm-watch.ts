import { existsSync, statSync } from 'node:fs';

import { trustedOwners } from '../../common/file-trust.js';
import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { ExitMonitor } from '../../monitor/exit-monitor.js';
import type { ExitWatch } from '../../monitor/exit-watch.js';
import type { Intent, IntentRecorder } from '../../process/intent-log.js';
import { isAlive } from '../../process/liveness.js';
import { isLeft, readPidfile } from '../../process/pidfile.js';
import { stop } from '../../process/stop.js';
import type { ControlStep } from '../../process/stop-options.js';
import { processTable } from '../../identity/platform-table.js';
import { isSameProcess, startOf, type ProcessIdentity } from '../../identity/process-identity.js';

import { classifyStop } from '../verdict/classify-stop.js';
import { GrowingFile, parseLogLine } from '../evidence/growing-file.js';
import { isWhole, lifeOf } from '../qemu/log-runs.js';
import { readQemuCommand, type QemuCommand } from '../qemu/qemu-command.js';
import type { QmpEvent } from '../qemu/qmp-event.js';
import { QmpLink } from '../qemu/qmp-link.js';
import { hasHadAgent, isTelling, keepEvent } from '../evidence/timeline.js';
import { obeyedSignal } from '../qemu/obeyed-signal.js';
import type { VmDriver } from '../control/vm-driver.js';
import type { VmOptions } from './vm-options.js';
import type { VmStop } from '../verdict/vm-verdict.js';

/** How {@link VmWatch.stop} goes about it: all in ms. */
export interface VmStopOptions {
  /** How long the guest may take to obey its power button: 60,000; 0: it is not pressed. */
  powerdownTimeoutMs?: number;
  /** How long the hypervisor may take to quit: 5,000; 0: it is not asked. */
  quitTimeoutMs?: number;
  /** How long SIGTERM may take, before SIGKILL: 5,000. */
  forceKillAfterDelayMs?: number;
  /** For the intent log. */
  reason?: string;
}

/** What a watch has of its monitor. */
export interface VmContext {
  monitor: ExitMonitor;
  recorder: IntentRecorder;
  readIntents: () => Promise<readonly Intent[]>;
  running(name: string): void;
  warning(error: Error, name: string): void;
  /** `null`: without a verdict. */
  ended(watch: VmWatch, stop: VmStop | null): void;
}

/** How often what a hypervisor writes is read, so that little is left for the end. */
const CATCH_UP_MS = 30_000;

/** Who was seen to be there has begun to run by then, and no other one has. */
const BEGUN_MS = 10_000;

/** Who has lived so long was ready. */
const SURELY_READY_MS = 10_000;

/** Who has not come so far was not ready: it takes some 50 ms. */
const SOON_READY_MS = 2000;

/** A connection ends with its process, about. */
const LOST_MS = 100;

/** Of a log, for people. */
const MOST_WORDS = 5;

/** Clocks of two processes. */
const CLOCK_SLACK_MS = 100;

/** One virtual machine under watch. */
export class VmWatch {
  readonly name: string;
  /**
   * Why it has ended. Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_CLOSED`, with what reading
   * its pidfile rejects with, and where it cannot be watched.
   */
  readonly stopped: Promise<VmStop>;
  readonly #options: VmOptions;
  readonly #context: VmContext;
  readonly #logEvents: QmpEvent[] = [];
  readonly #logLines: string[] = [];
  readonly #eventLog: GrowingFile | undefined;
  readonly #log: GrowingFile | undefined;
  #link: QmpLink | undefined;
  #watch: ExitWatch | undefined;
  #command: QemuCommand | null = null;
  #startedAt: Date | null = null;
  #hasCaughtUp = false;
  readonly #distrusted = new Set<string>();
  #isOverflown = false;
  /** A line of the event log was not written whole. */
  #isTorn = false;
  /** Of stop(), for close(). */
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly #armed: Promise<ExitWatch>;

  /** @internal */
  constructor(options: VmOptions, context: VmContext) {
    this.name = options.name;
    this.#options = options;
    this.#context = context;
    const { eventLog, log } = options;
    this.#eventLog =
      eventLog === undefined
        ? undefined
        : new GrowingFile(eventLog, (line) => {
            this.#keepEvent(parseLogLine(line));
          });
    // What it says of its end comes at its end: what is there already was another's.
    this.#log =
      log === undefined
        ? undefined
        : new GrowingFile(
            log,
            (line) => {
              this.#keepLine(line);
            },
            this.#isThere() ? sizeOf(log) : 0,
          );
    this.#armed = this.#arm();
    this.stopped = this.#run();
    this.stopped.catch(() => undefined); // whoever asks is told
  }

  /** Which process it is, once that is known. */
  get identity(): ProcessIdentity | null {
    return this.#watch?.identity ?? null;
  }

  /**
   * Ends it: presses its power button, then tells the hypervisor to quit, then sends SIGTERM, then
   * SIGKILL, each on record before it is done. Resolves with the verdict when its end was observed.
   *
   * Rejects as {@link stop} of exitwatch/process does, and with `ERR_EXITWATCH_TIMEOUT` where it outlives
   * all that.
   */
  async stop(options: VmStopOptions = {}): Promise<VmStop> {
    const {
      powerdownTimeoutMs = 60_000,
      quitTimeoutMs = 5000,
      forceKillAfterDelayMs = 5000,
    } = options;
    const { identity } = await this.#armed;
    const driver = this.#driver();
    const all: ControlStep[] = [
      {
        what: 'powerdown',
        call: (signal) => driver.powerDown(signal),
        timeoutMs: powerdownTimeoutMs,
      },
      { what: 'quit', call: (signal) => driver.forceOff(signal), timeoutMs: quitTimeoutMs },
    ];
    // What cannot even be asked for is not to be on record as if it had been.
    const control = driver.isReady ? all.filter(({ timeoutMs }) => timeoutMs > 0) : [];
    const result = await stop(identity, {
      control,
      forceKillAfterDelayMs,
      intentLog: this.#context.recorder,
      signal: this.#closing.signal,
      ...(options.reason === undefined ? {} : { reason: options.reason }),
      ...(this.#options.pidfile === undefined ? {} : { pidfile: this.#options.pidfile }),
    });
    if (result.outcome === 'timed-out') {
      throw new ExitwatchError('ERR_EXITWATCH_TIMEOUT', `${this.name} has outlived SIGKILL`);
    }
    return this.stopped;
  }

  /** Leaves it alone. */
  close(): void {
    this.#isClosed = true;
    this.#closing.abort();
    this.#watch?.close();
    this.#release();
  }

  /** Its own connection, where there is no other way to talk to it. */
  #driver(): Pick<VmDriver, 'powerDown' | 'forceOff'> & { isReady: boolean } {
    const { driver } = this.#options;
    if (driver !== undefined) {
      const powerDown = (signal?: AbortSignal) => driver.powerDown(signal);
      return { powerDown, forceOff: (signal) => driver.forceOff(signal), isReady: true };
    }
    const link = this.#link;
    const ask = async (command: string) => {
      await (link?.execute(command) ?? Promise.reject(new Error('it has no QMP socket')));
    };
    const powerDown = () => ask('system_powerdown');
    return { powerDown, forceOff: () => ask('quit'), isReady: link?.isReady === true };
  }

  #isThere(): boolean {
    const { identity } = this.#options;
    return identity === undefined || isAlive(identity) !== 'dead';
  }

  /** Before anything is waited for, where that can be. */
  #arm(): Promise<ExitWatch> {
    const { pid, identity, pidfile } = this.#options;
    if (pidfile !== undefined && pid === undefined && identity === undefined) {
      return readPidfile(pidfile).then((found) => this.#watchProcess(found.identity ?? found.pid));
    }
    return Promise.resolve(this.#watchProcess(identity ?? pid ?? 0));
  }

  #watchProcess(target: number | ProcessIdentity): ExitWatch {
    this.#watch = this.#context.monitor.watch(target);
    if (this.#isClosed) this.#watch.close();
    const { identity } = this.#watch;
    // By the clock as it is now: it may be set later.
    this.#startedAt = startOf(identity);
    const isThere = isAlive(identity) === 'alive';
    if (isThere) this.#trustOnly(ownersOf(identity.pid));
    this.#command = this.#options.command ?? (isThere ? readQemuCommand(identity.pid) : null);
    const { qmp } = this.#options;
    // Of one that is gone, the socket is another's by now, if it is anybody's.
    if (qmp !== undefined && isThere) this.#link = this.#connect(qmp, identity.pid);
    else if (isThere) this.#context.running(this.name);
    this.#timer = setInterval(() => void this.catchUp(), CATCH_UP_MS).unref();
    void this.catchUp();
    return this.#watch;
  }

  #connect(path: string, pid: number): QmpLink {
    return new QmpLink(path, this.#options.qmpIsInherited === true ? null : pid, {
      ready: () => {
        this.#context.running(this.name);
      },
      warning: (error) => {
        this.#context.warning(error, this.name);
      },
    });
  }

  #trustOnly(owners: readonly number[] | null): void {
    for (const file of [this.#eventLog, this.#log]) if (file !== undefined) file.owners = owners;
  }

  /**
   * Reads what its logs have by now.
   *
   * @internal
   */
  async catchUp(): Promise<void> {
    await Promise.all([this.#eventLog?.read(), this.#log?.read()]);
    this.#hasCaughtUp = true;
    for (const { path, refusal } of [this.#eventLog, this.#log].filter((file) => file != null)) {
      if (refusal === null || this.#distrusted.has(path)) continue;
      this.#distrusted.add(path);
      const detail = `${JSON.stringify(path)} ${refusal}: it is not believed`;
      this.#context.warning(new ExitwatchError('ERR_EXITWATCH_UNTRUSTED_LOG', detail), this.name);
    }
  }

  /** What is there at first may be of an earlier start; what comes while we are there is not. */
  #keepEvent(event: QmpEvent | 'torn' | null): void {
    if (event === 'torn') this.#isTorn = true;
    if (event === null || event === 'torn' || !isTelling(event)) return;
    if (!this.#hasCaughtUp && !isSince(event.at, this.#startedAt)) {
      this.#isTorn = false; // that was another's, too
      return;
    }
    if (!keepEvent(this.#logEvents, event)) this.#isOverflown = true;
  }

  #keepLine(line: string): void {
    this.#logLines.push(line);
    if (this.#logLines.length > 100) this.#logLines.shift();
  }

  async #run(): Promise<VmStop> {
    let verdict: VmStop | null = null;
    try {
      const watch = await this.#armed;
      verdict = await this.#judge(await watch.exited, watch.identity);
      return verdict;
    } finally {
      this.#release();
      this.#context.ended(this, verdict);
    }
  }

  #release(): void {
    clearInterval(this.#timer);
    this.#link?.close();
  }

  /** Its process has ended: now all that it had to say was said. */
  async #judge(exit: ExitEvent, identity: ProcessIdentity): Promise<VmStop> {
    const [isLogged, hasLog, intents] = await Promise.all([
      this.#eventLog?.read() ?? false,
      this.#log?.read() ?? false,
      this.#intentsFor(identity),
      this.#link?.end(),
    ]);
    const logged = isLogged ? this.#ownEvents(exit) : [];
    const heard = this.#link?.events ?? [];
    const defect = this.#defectOf(isLogged, logged, heard);
    const isLogComplete =
      isLogged &&
      defect === null &&
      this.#isFromItsStart(logged) &&
      this.#command?.isIncoming !== true &&
      this.#isSurelyOwn(logged);
    if (defect !== null) {
      const detail = `${JSON.stringify(this.#eventLog?.path)} ${defect}`;
      this.#context.warning(new ExitwatchError('ERR_EXITWATCH_QMP', detail), this.name);
    }
    const events = isLogComplete || heard.length < logged.length ? logged : heard;
    const { pidfile, qmp } = this.#options;
    return classifyStop({
      name: this.name,
      exit,
      events,
      eventsComplete: isLogComplete,
      eventsUnbroken: isLogComplete || (events === heard && this.#isLinkUnbroken(exit)),
      initialStatus: isLogComplete ? null : (this.#link?.initialStatus ?? null),
      heardSince: this.#link?.readyAt ?? null,
      lastStatus: this.#lastStatus(logged),
      tellsMigration: this.#link?.tellsMigration === true,
      ...(this.#command === null ? {} : { incoming: this.#command.isIncoming }),
      ready: this.#wasReady(exit, logged),
      mayLinger: this.#command?.mayLinger ?? null,
      agent: this.#agent(isLogComplete ? logged : null),
      ...(this.#command === null ? {} : { debugExit: this.#command.hasDebugExit }),
      obeyed: this.#isLogOwn() ? obeyedSignal(this.#logLines) : null,
      hasLog: hasLog && this.#command?.isDaemonized === true,
      leftovers: {
        pidfile: isLeft(pidfile ?? null),
        socket: qmp === undefined ? null : existsSync(qmp),
      },
      intents,
      lastWords: exit.how === 'exited' && exit.exitCode !== 0 ? this.#lastWords() : [],
    });
  }

  /** What is wrong with its event log; `null`: nothing, or it has none, or that was told before. */
  #defectOf(
    isLogged: boolean,
    logged: readonly QmpEvent[],
    heard: readonly QmpEvent[],
  ): string | null {
    const log = this.#eventLog;
    if (log?.refusal !== null) return null;
    if (log.failure !== null) return `cannot be read: ${log.failure.message}`;
    const hasRun = this.#link?.readyAt != null;
    if (!isLogged) {
      if (log.modifiedAt !== null) return 'is gone';
      return hasRun && this.#options.eventLogIsOptional !== true ? 'is not there' : null;
    }
    if (this.#isTorn || log.wasFull) return 'may lack events: its disk is full, or was';
    if (log.wasReplaced) return 'may lack events: it was replaced, or cut';
    if (this.#isOverflown) return 'has more events than anybody can judge';
    // One that goes on with what was begun elsewhere has no beginning here.
    const isWithoutBeginning = this.#command?.isIncoming === true || !this.#isSurelyOwn(logged);
    const isLacking =
      (hasRun && !isWithoutBeginning && !this.#isFromItsStart(logged)) ||
      !countsAtLeast(logged, heard);
    return isLacking ? 'lacks events: the event log does not work' : null;
  }

  /** What it said when it was asked last, unless its log knows that it went on since. */
  #lastStatus(logged: readonly QmpEvent[]): string | null {
    const { lastStatus = null, lastStatusAt = null } = this.#link ?? {};
    const hasGoneOn = logged.some(
      ({ event, at }) =>
        (event === 'RESUME' || event === 'RESET') &&
        (at?.getTime() ?? 0) > (lastStatusAt?.getTime() ?? 0),
    );
    return hasGoneOn ? null : lastStatus;
  }

  /** `all`: the events of its life, if none is missing. */
  #agent(all: readonly QmpEvent[] | null): NonNullable<VmOptions['agent']> | null {
    const { agent } = this.#options;
    if (agent !== undefined) return agent;
    if (this.#command === null) {
      // Nobody has seen it, or it was about to end by then: its log has to tell.
      if (all === null) return null;
      return hasHadAgent(all) ? 'open' : 'none';
    }
    const { hasAgent, tellsAgent } = this.#command;
    const wasNeverThere = tellsAgent && all !== null && !hasHadAgent(all);
    return hasAgent && !wasNeverThere ? 'open' : 'none';
  }

  /** A log that an earlier start has left says nothing of this one. */
  #isLogOwn(): boolean {
    const writtenAt = this.#log?.modifiedAt?.getTime() ?? -Infinity;
    return isSince(new Date(writtenAt), this.#startedAt);
  }

  #lastWords(): string[] {
    return this.#isLogOwn() ? this.#logLines.slice(-MOST_WORDS) : [];
  }

  /** One that was started paused has no RESUME at its beginning. */
  #isFromItsStart(logged: readonly QmpEvent[]): boolean {
    return isWhole(logged) || (logged.length > 0 && this.#link?.initialStatus === 'prelaunch');
  }

  #ownEvents(exit: ExitEvent): QmpEvent[] {
    const { eventsAfter = null, seenAt = null } = this.#options;
    const bounds = { after: eventsAfter, seenAt, endedAt: this.#endOf(exit) };
    return lifeOf(this.#logEvents, { startedAt: this.#startedAt, ...bounds });
  }

  /** Of a start in another life of this host, nothing but when it was seen tells which of them it was. */
  #isSurelyOwn([first]: readonly QmpEvent[]): boolean {
    const { seenAt } = this.#options;
    if (this.#startedAt !== null) return true;
    return (
      seenAt !== undefined && (first?.at?.getTime() ?? Infinity) <= seenAt.getTime() + BEGUN_MS
    );
  }

  /** When it had ended at the latest: what a log has of later is another start's. */
  #endOf(exit: ExitEvent): Date | null {
    const { endedBefore } = this.#options;
    if (exit.how === 'unknown') return endedBefore ?? null;
    const seen = exit.exitedAt.getTime() + exit.uncertaintyMs + CLOCK_SLACK_MS;
    return new Date(Math.min(seen, endedBefore?.getTime() ?? Infinity));
  }

  /** From its first word to its process's end. */
  #isLinkUnbroken(exit: ExitEvent): boolean {
    const link = this.#link;
    if (link?.readyAt == null || link.wasInterrupted || link.isOverflown) return false;
    // Lost before the end, without a word on it: what came then, we did not hear.
    const wasToldAll = link.events.some(({ event }) => event === 'SHUTDOWN');
    const lostMs = exit.exitedAt.getTime() - (link.lostAt ?? exit.exitedAt).getTime();
    return wasToldAll || lostMs <= LOST_MS + exit.uncertaintyMs;
  }

  #wasReady(exit: ExitEvent, logged: readonly QmpEvent[]): boolean | null {
    // RESUME comes when it is about to be ready.
    const livedMs = exit.exitedAt.getTime() - (this.#startedAt?.getTime() ?? -Infinity);
    const isEmpty = this.#link?.events.length === 0 && logged.length === 0;
    // It talked to us, and had nothing to say: it may have given up before it ran.
    const isSilent = isEmpty && this.#link?.lastStatus === null && livedMs < SOON_READY_MS;
    if (this.#link?.readyAt != null && !isSilent) return true;
    if (logged.some(({ event }) => event !== 'RESUME')) return true;
    if (exit.how === 'unknown' || this.#startedAt === null) return null;
    if (this.#link === undefined) return livedMs > SURELY_READY_MS ? true : null;
    // It runs, or its hypervisor had begun to talk to us.
    if (logged.length > 0 || this.#link.wasGreeted) return null;
    // Without a socket nothing tells how far it was; what ends by itself then has not come far.
    if (!this.#link.wasThere && exit.how !== 'exited') return null;
    // One that does not come, or is of no use, says nothing of a machine that has had the time.
    return !this.#link.isUnusable && livedMs < SOON_READY_MS ? false : null;
  }

  async #intentsFor(identity: ProcessIdentity): Promise<Intent[] | null> {
    try {
      const intents = await this.#context.readIntents();
      return intents.filter((intent) => isSameProcess(intent.identity, identity));
    } catch (error) {
      this.#context.warning(error as Error, this.name);
      return null;
    }
  }
}

/** Nothing that one witness has heard is missing from the other. */
function countsAtLeast(logged: readonly QmpEvent[], heard: readonly QmpEvent[]): boolean {
  const count = (events: readonly QmpEvent[], name: string) =>
    events.filter(({ event }) => event === name).length;
  return heard.every(({ event }) => count(logged, event) >= count(heard, event));
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

/** Root, us, and whom it runs as; `null` where nobody can tell. */
function ownersOf(pid: number): number[] | null {
  const lookup = processTable().lookNow(pid);
  if (lookup === null || lookup === 'unknown' || lookup.uid === null) return null;
  return trustedOwners(lookup.uid);
}

/** Whatever it was before was of an earlier start. */
function isSince(at: Date | null, startedAt: Date | null): boolean {
  if (at === null || startedAt === null) return true;
  return at.getTime() >= startedAt.getTime() - CLOCK_SLACK_MS;
}
