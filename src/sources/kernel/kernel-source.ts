import type { Downgrade, ExitEvent, Filter, SourceName } from '../../events/exit-event.js';
import { bootId } from '../../identity/boot-id.js';
import {
  type ProcessIdentity,
  bootPrefix,
  identityOf,
  inodeOf,
  pidNamespace,
} from '../../identity/process-identity.js';
import { WatchResult } from '../../native/abi.js';
import type { ExitReader } from '../../native/addon.js';
import { translateFailure } from '../../native/failures.js';
import { IdWriter } from '../../native/id-writer.js';
import { KernelRecords } from '../../native/kernel-records.js';
import { loadAddon } from '../../native/load-addon.js';
import { SignalRecords } from '../../native/signal-records.js';
import { CgroupPaths } from '../../trace/cgroup-paths.js';
import { CommandLines } from '../../trace/command-lines.js';
import { LikelyClients } from '../../trace/likely-clients.js';
import { SignalHistory } from '../../trace/signal-history.js';
import { joinStory, NO_STORY, type SignalStory } from '../../trace/signal-story.js';
import { judgeTrial } from '../../trace/trial.js';
import { bpfDowngrade, failureDowngrade } from '../downgrade.js';
import type { Armed, ExitSource, SourceListener, SourceStats, WatchedPid } from '../exit-source.js';
import type { Scope, SourceOptions } from '../source-kind.js';
import { knownOf, WatchedIdentities } from '../watched-identities.js';

import { asksForCbpf, spoil, streamUse } from './reader-options.js';

/** Records per batch. */
const BATCH = 512;
const SIGNAL_BATCH = 128;

/** The proc connector, pidfds and the signal trace, read and joined by a thread of the addon. */
export class KernelSource implements ExitSource {
  readonly #scope: Scope;
  readonly #listener: SourceListener;
  readonly #cgroups = new CgroupPaths((id) => this.#reader.cgroupPath(id));
  readonly #records = new KernelRecords(
    BATCH,
    this.#cgroups,
    // Read this first: a batch must not fail because no descriptor is left.
    new IdWriter(bootPrefix(bootId(), pidNamespace())),
    typeof inodeOf(process.pid) === 'number',
  );
  readonly #signals = new SignalRecords(SIGNAL_BATCH);
  readonly #commandLines: CommandLines | null;
  readonly #history: SignalHistory;
  readonly #isTraceWanted: boolean;
  /**
   * Why there is no signal trace, or none to trust; determined once the reader has sent something.
   */
  #traceDowngrade: Downgrade | null | undefined;
  #isListening = false;
  readonly #watched = new WatchedIdentities();
  readonly #reader: ExitReader;
  readonly #opensPidfds: boolean;
  #source: SourceName | null = null;
  #filter: Filter | null = null;

  constructor(options: SourceOptions, listener: SourceListener) {
    this.#scope = options.scope;
    this.#listener = listener;
    this.#opensPidfds = options.source !== 'connector';
    this.#isTraceWanted = options.trace !== 'off';
    const { redact } = options;
    this.#commandLines = redact && new CommandLines((n) => this.#reader.commandLine(n), redact);
    this.#history = new SignalHistory(this.#cgroups, this.#commandLines, new LikelyClients(redact));
    const addon = loadAddon();
    this.#reader = new addon.ExitReader({
      watchedOnly: options.scope === 'watched',
      forceCbpf: asksForCbpf(),
      streamUse: streamUse(options),
      opensPidfds: this.#opensPidfds,
      tracesSignals: this.#isTraceWanted,
      spoil: spoil(addon.spoils),
      receiveBufferBytes: options.receiveBufferBytes,
      queueLimit: options.queueLimit,
      canaryIntervalMs: options.canaryIntervalMs,
      statusTimeoutMs: options.statusTimeoutMs,
      maxDelayMs: options.maxDelayMs,
      commandLines: redact !== null,
    });
  }

  start(): void {
    this.#call(() => {
      this.#reader.start(this.#records.buffer, this.#signals.buffer, (records, signals) => {
        this.#onSignals(signals);
        this.#onBatch(records);
      });
    });
  }

  watch(identity: ProcessIdentity): Armed {
    const { pid, startTicks, inode } = identity;
    const armed = this.#call(() => this.#reader.watch(pid, startTicks, inode ?? 0));
    if (armed === WatchResult.gone) return 'gone';
    this.#watched.add(identity);
    return this.#armedAs(armed);
  }

  watchPid(pid: number): WatchedPid | null {
    const found = this.#reader.watchPid(pid);
    if (found === undefined) return null;
    const { startTicks, inode, result } = found;
    const identity = identityOf(pid, { startTicks, inode: inode === 0 ? null : inode });
    this.#watched.add(identity);
    return { identity, armed: this.#armedAs(result) };
  }

  #armedAs(result: WatchResult): Armed {
    return result === WatchResult.armed && this.#opensPidfds ? 'with-pidfd' : 'without-pidfd';
  }

  unwatch(identity: ProcessIdentity): void {
    const { pid, startTicks, inode } = identity;
    this.#reader.unwatch(pid, startTicks, inode ?? 0);
    this.#watched.delete(identity);
    if (this.#scope === 'watched') this.#history.forget({ pid, startTicks, inode: inode ?? 0 });
  }

  awaitTrace(timeoutMs: number): void {
    if (this.#isTraceWanted) this.#reader.awaitTrace(timeoutMs);
  }

  listen(listens: boolean): void {
    this.#isListening = listens;
    this.#reader.listen(listens);
  }

  stats(): SourceStats {
    const { lastEventMs, canaryAgeMs = null, withoutPidfd, ...counts } = this.#reader.stats();
    return {
      ...counts,
      withoutPidfd,
      lastEventAt: lastEventMs === 0 ? null : new Date(lastEventMs),
      canaryAgeMs,
      tableAgeMs: null,
      source: this.#source,
      filter: this.#filter,
      watchedSet: this.#watchedSet(),
    };
  }

  ref(): void {
    this.#reader.ref();
  }

  unref(): void {
    this.#reader.unref();
  }

  close(): void {
    this.#reader.close();
  }

  #call<Result>(use: () => Result): Result {
    try {
      return use();
    } catch (error) {
      throw translateFailure(error);
    }
  }

  /** Notes and describes the source that reports exits from now on. */
  #change(index: number): {
    source: SourceName;
    filter: Filter | null;
    downgrade: Downgrade | null;
    namesPrograms: boolean;
  } {
    let downgrade;
    if (!this.#records.hasStream(index)) {
      this.#source = 'pidfd';
      this.#filter = null;
      const error = this.#records.failure(index);
      downgrade = error === null ? null : failureDowngrade(error);
    } else {
      this.#source = 'connector';
      downgrade = bpfDowngrade(this.#reader.filter());
      this.#filter = downgrade === null ? 'ebpf' : 'cbpf';
    }
    const namesPrograms = this.#records.namesPrograms(index);
    return { source: this.#source, filter: this.#filter, downgrade, namesPrograms };
  }

  #onReady(index: number): void {
    const receiveBufferBytes = this.#records.receiveBufferBytes(index);
    const change = this.#change(index);
    this.#listener.ready({
      event: 'ready',
      scope: this.#scope,
      ...change,
      receiveBufferBytes,
      traced: this.#isTraceTrusted(),
      traceDowngrade: this.#traceDowngrade ?? null,
    });
  }

  /** Whether the signal trace runs and has passed its trial. */
  #isTraceTrusted(): boolean {
    if (this.#isTraceWanted && this.#traceDowngrade === undefined) {
      const trial = this.#reader.trial();
      this.#traceDowngrade =
        trial === undefined ? bpfDowngrade(this.#reader.trace()) : judgeTrial(trial);
    }
    return this.#traceDowngrade === null;
  }

  #onGap(index: number): void {
    const gap = this.#records.gap(index);
    if (gap.reason === 'trace-buffer') this.#history.doubtSignals();
    else this.#history.doubtRuns();
    this.#listener.gap(gap);
  }

  #onSource(index: number): void {
    const previous = this.#source ?? 'connector';
    const at = this.#records.sourceDate(index);
    this.#listener.source({ event: 'source', at, previous, ...this.#change(index) });
  }

  #onFailed(index: number): void {
    const error = this.#records.failure(index);
    if (error !== null) this.#listener.failed(error);
  }

  #watchedSet(): SourceStats['watchedSet'] {
    if (this.#scope === 'all' || this.#filter === null) return null;
    return this.#filter === 'ebpf' ? 'kernel' : 'user-space';
  }

  #onExit(index: number): void {
    const event = this.#records.exit(index);
    if (this.#commandLines !== null) {
      event.commandLine = this.#commandLines.of(this.#records.commandLine(index));
    }
    const isOnlyForWatcher = this.#records.isOnlyForWatcher(index);
    const story = this.#isTraceTrusted()
      ? this.#storyOf(event, index, isOnlyForWatcher && this.#scope === 'all')
      : null;
    joinStory(event, story);
    if (this.#scope === 'all') this.#history.noteEnd(event);
    if (this.#watched.size > 0) this.#onWatched(event, index);
    this.#listener.exit(event, isOnlyForWatcher);
  }

  /** Gives the event the id under which the process is watched. */
  #onWatched(event: ExitEvent, index: number): void {
    if (!this.#watched.has(event.pid)) return;
    const identity = this.#watched.of(knownOf(this.#records.end(index, event)));
    if (identity === undefined) return;
    event.id = identity.id;
    this.#watched.delete(identity);
  }

  /** `isAskedAgain`: this exit goes to its watch now, and to all listeners later. */
  #storyOf(event: ExitEvent, index: number, isAskedAgain: boolean): SignalStory {
    if (event.how === 'exited' && this.#history.isEmpty) return NO_STORY;
    return this.#history.end(this.#records.end(index, event), isAskedAgain);
  }

  #onSignals(count: number): void {
    if (!this.#isTraceTrusted()) return;
    for (let index = 0; index < count; index++) {
      const signal = this.#signals.signal(index);
      // It is not watched any more, so its exit does not matter.
      if (this.#scope === 'watched' && !this.#watched.has(signal.pid)) continue;
      const sender = this.#history.add(signal);
      if (!this.#isListening || this.#source === null || sender === null) continue;
      const { pid, name } = signal;
      const id = this.#watched.of(knownOf(signal))?.id ?? this.#records.idOf(signal);
      this.#listener.signal({ event: 'signal', id, pid, name, sender });
    }
  }

  #onBatch(count: number): void {
    for (let index = 0; index < count; index++) {
      switch (this.#records.kind(index)) {
        case 'exit':
          this.#onExit(index);
          break;
        case 'gap':
          this.#onGap(index);
          break;
        case 'ready':
          this.#onReady(index);
          break;
        case 'failed':
          this.#onFailed(index);
          break;
        case 'source':
          this.#onSource(index);
          break;
      }
    }
    this.#listener.batchEnd();
  }
}
