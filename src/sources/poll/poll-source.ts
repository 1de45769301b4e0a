import { ExitwatchError } from '../../common/errors.js';
import type { Downgrade } from '../../events/exit-event.js';
import { unknownExit } from '../../events/unknown-exit.js';
import { bootId } from '../../identity/boot-id.js';
import { processTable } from '../../identity/platform-table.js';
import {
  type ProcessIdentity,
  bootPrefix,
  identityId,
  pidNamespace,
} from '../../identity/process-identity.js';
import type { Lookup, ProcessRow } from '../../identity/process-table.js';
import { signalZero } from '../../identity/signal-zero.js';
import { TRIAL_CHILD_NAME } from '../../native/abi.js';
import { POLLING_DOWNGRADE } from '../downgrade.js';
import type { Armed, ExitSource, SourceListener, SourceStats } from '../exit-source.js';
import type { Scope, SourceOptions } from '../source-kind.js';

/** A process that existed at the last look. */
interface Seen {
  readonly id: string;
  readonly pid: number;
  readonly startTicks: number | null;
  row: ProcessRow | null;
  /** When it was last seen alive, on performance.now(), and {@link wallOffset} then. */
  aliveMs: number;
  wallOffsetMs: number;
}

/**
 * Reads the process table at an interval: a process that is gone has exited, and its outcome is
 * unknown.
 */
export class PollSource implements ExitSource {
  readonly #scope: Scope;
  readonly #intervalMs: number;
  readonly #listener: SourceListener;
  readonly #downgrade: Downgrade | null;
  readonly #isTraceWanted: boolean;
  readonly #table = processTable();
  readonly #watched = new Map<string, Seen>();
  /** With scope `'all'`. By pid, because readings of the same start can differ. */
  #all = new Map<number, Seen>();
  #timer: NodeJS.Timeout | undefined;
  #state: 'new' | 'starting' | 'running' | 'closed' = 'new';
  #referenced = true;
  #received = 0;
  #lastEventAt: Date | null = null;
  #lookedMs: number | null = null;
  #looks = 0;

  constructor(
    options: Pick<SourceOptions, 'scope' | 'pollIntervalMs' | 'trace'>,
    listener: SourceListener,
    downgrade: Downgrade | null,
  ) {
    this.#scope = options.scope;
    this.#intervalMs = options.pollIntervalMs;
    this.#listener = listener;
    this.#downgrade = downgrade;
    this.#isTraceWanted = options.trace !== 'off';
  }

  start(): void {
    this.#state = 'starting';
    void this.#begin();
  }

  watch({ id, pid, startTicks }: ProcessIdentity): Armed {
    const known = startTicks === 0 ? null : startTicks;
    // Read the name, unless a lookup is expensive.
    const lookup = this.#table.by === 'ps' ? null : this.#table.lookNow(pid);
    const isIt =
      lookup !== null && lookup !== 'unknown' && this.#isSame({ startTicks: known }, lookup);
    const row = isIt ? lookup : null;
    this.#watched.set(id, { id, pid, startTicks: known, row, ...seenAt(performance.now()) });
    return 'without-pidfd';
  }

  unwatch({ id }: ProcessIdentity): void {
    this.#watched.delete(id);
  }

  awaitTrace(): void {
    // There is no signal trace.
  }

  listen(): void {
    // Polling sees no signals.
  }

  stats(): SourceStats {
    return {
      received: this.#received,
      delivered: this.#received,
      rejected: 0,
      lost: 0,
      gaps: 0,
      queueDepth: 0,
      lastEventAt: this.#lastEventAt,
      canaryAgeMs: null,
      tableAgeMs: this.#lookedMs === null ? null : performance.now() - this.#lookedMs,
      source: this.#state === 'new' ? null : 'poll',
      filter: null,
      watchedSet: null,
      withoutPidfd: this.#watched.size,
      wakeups: this.#looks,
    };
  }

  ref(): void {
    this.#referenced = true;
    this.#timer?.ref();
  }

  unref(): void {
    this.#referenced = false;
    this.#timer?.unref();
  }

  close(): void {
    this.#state = 'closed';
    clearTimeout(this.#timer);
  }

  async #begin(): Promise<void> {
    try {
      await (this.#scope === 'all' ? this.#lookAtAll() : this.#lookAtWatched());
    } catch (error) {
      if (!this.#isClosed()) this.#listener.failed(inspectionFailed(error));
      return;
    }
    if (this.#isClosed()) return;
    this.#state = 'running';
    this.#listener.ready({
      event: 'ready',
      scope: this.#scope,
      source: 'poll',
      filter: null,
      downgrade: this.#downgrade,
      namesPrograms: false,
      receiveBufferBytes: null,
      traced: false,
      traceDowngrade: this.#isTraceWanted ? POLLING_DOWNGRADE : null,
    });
    this.#listener.batchEnd();
    this.#sleep();
  }

  #sleep(): void {
    this.#timer = setTimeout(() => void this.#look(), this.#intervalMs);
    if (!this.#referenced) this.#timer.unref();
  }

  /** A failed look proves nothing: neither that a process is alive, nor that it is gone. */
  async #look(): Promise<void> {
    try {
      await (this.#scope === 'all' ? this.#lookAtAll() : this.#lookAtWatched());
    } catch {
      // stats().tableAgeMs shows the age of the last good look.
    }
    if (this.#isClosed()) return;
    this.#listener.batchEnd();
    this.#sleep();
  }

  /** Call this before delivering anything that was seen. Throws if the table is unreliable. */
  #looked(lookups: ReadonlyMap<number, Lookup>): void {
    checkThatWeAreThere(lookups);
    this.#looks++;
    this.#lookedMs = performance.now();
  }

  async #lookAtWatched(): Promise<void> {
    const nowMs = performance.now();
    const pids = [...this.#watched.values()].map(({ pid }) => pid);
    const lookups = await this.#table.look([process.pid, ...pids]);
    this.#looked(lookups);
    this.#tellEnded([...this.#watched.values()], lookups, nowMs);
  }

  async #lookAtAll(): Promise<void> {
    const nowMs = performance.now();
    const lookups = await this.#table.list();
    this.#looked(lookups);
    const watched = [...this.#watched.values()];
    const isWatched = (seen: Seen) =>
      watched.some((other) => other.pid === seen.pid && this.#isSame(other, seen));
    const watchedPids = new Set(watched.map(({ pid }) => pid));
    const others = [...this.#all.values()].filter(
      (seen) => !(watchedPids.has(seen.pid) && isWatched(seen)),
    );
    this.#all = this.#living(lookups, nowMs);
    const left = this.#tellEnded([...others, ...watched], lookups, nowMs);
    // Keep what was known before, and do not forget a process that cannot be seen.
    for (const seen of left) this.#all.set(seen.pid, seen);
  }

  /** Reports the processes that have exited; returns the others, as far as this is known. */
  #tellEnded(before: readonly Seen[], lookups: Map<number, Lookup>, nowMs: number): Seen[] {
    return before.filter((seen) => {
      if (this.#isClosed() || !this.#hasEnded(seen, lookups.get(seen.pid), nowMs)) return true;
      const isLeft = this.#watched.has(seen.id) || this.#scope === 'all';
      if (isLeft) this.#tell(seen);
      return false;
    });
  }

  #hasEnded(seen: Seen, lookup: Lookup | undefined, nowMs: number): boolean {
    // Watched since the table was read, which may show an earlier process with the same pid.
    if (seen.aliveMs > nowMs) return false;
    // It may exist although the table lacks it: hidden from us (hidepid).
    if (lookup === undefined) return signalZero(seen.pid) === 'gone';
    if (lookup === 'unknown') return false;
    if (lookup.isDead || !this.#isSame(seen, lookup)) return true;
    seen.row = { ...lookup, uid: lookup.uid ?? seen.row?.uid ?? null };
    if (seen.aliveMs < nowMs) Object.assign(seen, seenAt(nowMs));
    return false;
  }

  #isSame(a: { startTicks: number | null }, b: { startTicks: number | null }): boolean {
    if (a.startTicks === null || b.startTicks === null) return true;
    return Math.abs(a.startTicks - b.startTicks) <= this.#table.startTolerance;
  }

  #living(lookups: Map<number, Lookup>, nowMs: number): Map<number, Seen> {
    const living = new Map<number, Seen>();
    for (const [pid, lookup] of lookups) {
      if (lookup === 'unknown' || lookup.isDead || lookup.isKernelThread) continue;
      // The trial child of another monitor in this process; it lives only briefly.
      if (lookup.name === TRIAL_CHILD_NAME && lookup.parentPid === process.pid) continue;
      const id = idOf(pid, lookup.startTicks);
      const { startTicks } = lookup;
      living.set(pid, { id, pid, startTicks, row: lookup, ...seenAt(nowMs) });
    }
    return living;
  }

  #tell(seen: Seen): void {
    this.#watched.delete(seen.id);
    this.#received++;
    const { id, pid, startTicks, row, aliveMs, wallOffsetMs } = seen;
    // By how much the wall clock was set, and for how long the machine was suspended.
    const jumpMs = Math.abs(wallOffset() - wallOffsetMs);
    const exitedAt = new Date();
    this.#lastEventAt = exitedAt;
    const known = {
      id,
      pid,
      parentPid: row?.parentPid ?? null,
      name: row?.name ?? null,
      uid: row?.uid ?? null,
      startedAt: startTicks === null ? null : this.#startTime(startTicks),
      exitedAt,
      uncertaintyMs: Math.ceil(performance.now() - aliveMs + jumpMs),
      source: 'poll' as const,
    };
    this.#listener.exit(unknownExit(known, 'polled'), false);
  }

  /** An exit must not be lost because no descriptor is left. */
  #startTime(startTicks: number): Date | null {
    try {
      return this.#table.startTime(startTicks);
    } catch {
      return null;
    }
  }

  #isClosed(): boolean {
    return this.#state === 'closed';
  }
}

/** What to add to performance.now(), which stops while the machine sleeps, to get the wall clock, in ms. */
function wallOffset(): number {
  return Date.now() - performance.now();
}

/** That a process was alive at this time, by performance.now(). */
function seenAt(aliveMs: number): Pick<Seen, 'aliveMs' | 'wallOffsetMs'> {
  return { aliveMs, wallOffsetMs: wallOffset() };
}

function idOf(pid: number, startTicks: number | null): string {
  return identityId(bootPrefix(bootId(), pidNamespace()), pid, null, startTicks, Date.now());
}

/** A table without this process is invalid: other processes missing from it may not be gone. */
function checkThatWeAreThere(lookups: ReadonlyMap<number, Lookup>): void {
  if (!lookups.has(process.pid)) throw new Error('the process table does not contain this process');
}

function inspectionFailed(error: unknown): ExitwatchError {
  if (error instanceof ExitwatchError) return error;
  return new ExitwatchError('ERR_EXITWATCH_NO_PROC', 'cannot read the process table', {
    cause: error,
  });
}
