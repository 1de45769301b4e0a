import { ExitwatchError } from '../common/errors.js';
import type { ExitEvent } from '../events/exit-event.js';
import type { ProcessIdentity } from '../identity/process-identity.js';
import type { NativeRecorder } from '../native/addon.js';

import type { ExitRing, Recording } from './exit-ring.js';
import { RecordedExits } from './recorded-exits.js';
import { removePins } from './pin-folder.js';
import { LEASE_MS, type OpenRecorders } from './recorder-pins.js';

/** E2BIG of <asm-generic/errno-base.h>. */
const E2BIG = 7;

/** How often to renew the lease. */
const RENEWAL_MS = 60 * 60 * 1000;

/** The recorder of a state directory, and older ones that it has replaced. */
export class Recordings {
  /** The oldest first; the last one records. */
  readonly #all: Recording[] = [];
  readonly #previous: { recording: Recording; folder: string }[] = [];

  get isEmpty(): boolean {
    return this.#all.length === 0;
  }

  /** Those that record the exits of all processes. */
  get rings(): Recording[] {
    return this.#all.filter(({ recorder }) => recorder.about()?.ringBytes !== 0);
  }

  addPinned({ current, previous }: OpenRecorders): void {
    for (const { recorder, folder } of previous) {
      this.#previous.push({ recording: this.add(recorder), folder });
    }
    this.add(current);
  }

  add(recorder: NativeRecorder): Recording {
    const recording = { recorder, exits: new RecordedExits(recorder) };
    this.#all.push(recording);
    return recording;
  }

  /** Forgets all other processes: a crash between two steps may have left some. */
  retain(identities: readonly ProcessIdentity[]): void {
    const numbers = identities.flatMap(({ pid, startTicks, inode }) => [
      pid,
      startTicks,
      inode ?? 0,
    ]);
    this.#all.at(-1)?.recorder.retain(Float64Array.from(numbers));
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_RECORDER_FULL`, `ERR_EXITWATCH_SYSTEM` */
  watch({ pid, startTicks, inode }: ProcessIdentity): void {
    const recorder = this.#all.at(-1)?.recorder;
    const about = recorder?.about();
    if (recorder === undefined || about === undefined) return;
    if (inode === null && about.hasInodes) return; // pidfd_open(2) is forbidden
    const errno = recorder.watch(pid, startTicks, inode ?? 0);
    if (errno === 0) return;
    if (errno !== E2BIG) {
      throw new ExitwatchError('ERR_EXITWATCH_SYSTEM', 'the recorder cannot be used', { errno });
    }
    throw new ExitwatchError(
      'ERR_EXITWATCH_RECORDER_FULL',
      `the recorder has room for ${about.slots} watched processes`,
      { remedy: 'close watches, commit exits, or start with more recorder.slots' },
    );
  }

  forget({ pid, startTicks, inode }: ProcessIdentity): void {
    for (const { recorder } of this.#all) recorder.forget(pid, startTicks, inode ?? 0);
  }

  find(identity: ProcessIdentity): ExitEvent | null {
    for (const { exits } of this.#all.toReversed()) {
      const event = exits.find(identity);
      if (event !== null) return event;
    }
    return null;
  }

  readSignals(): void {
    for (const { exits } of this.#all) exits.readSignals();
  }

  /** Lets go of signals that no exit needs any more; `sinceMs`: of those since then, some may. */
  letGo(ring: ExitRing | null, sinceMs: number): void {
    const mostMs = Math.min(sinceMs, performance.now());
    for (const { recorder, exits } of this.#all) {
      exits.letGo(Math.min(mostMs, ring?.uncommittedSince(recorder) ?? Infinity));
    }
  }

  renewLease(): void {
    const recorder = this.#all.at(-1)?.recorder;
    if (recorder !== undefined && recorder.lease() < LEASE_MS - RENEWAL_MS) {
      recorder.setLease(LEASE_MS);
    }
  }

  /** Removes the older ones, once all in their rings is committed. */
  removePrevious(ring: ExitRing | null): void {
    if (this.#previous.length === 0) return;
    const isDone = this.#previous.every(
      ({ recording }) => ring === null || ring.isDone(recording.recorder),
    );
    if (!isDone) return;
    for (const { recording, folder } of this.#previous.splice(0)) {
      this.#all.splice(this.#all.indexOf(recording), 1);
      ring?.remove(recording.recorder);
      recording.recorder.close();
      removePins(folder);
    }
  }

  /** Nobody wants what the rings have: without room, signals would count as lost. */
  drainUnread(): void {
    for (const { recorder } of this.rings) recorder.commitRing(recorder.ringEnd());
  }

  close(): void {
    for (const { recorder } of this.#all.splice(0)) recorder.close();
  }
}
