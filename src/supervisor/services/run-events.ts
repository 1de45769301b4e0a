import type { Orphans } from './orphans.js';
import type { RunHost } from './run-host.js';
import type { ServiceWorker } from './service-worker.js';

/** Whom the events of runs concern. */
export interface RunListener {
  /** `null`: it is no service's present run. */
  ownerOf(id: string): ServiceWorker | null;
  /** `null`: whether somebody wants them is not known yet. */
  orphans(): Orphans | null;
  /** There is another keeper. */
  onReopened(): void;
  /** There is none any more. */
  onLost(error: Error): void;
}

/** Hands each event of a run to its service. */
export function listenToRuns(runs: RunHost, listener: RunListener): void {
  runs.removeAllListeners();
  runs.on('ended', (exit, run) => {
    const worker = listener.ownerOf(run.id);
    if (worker !== null) worker.onEnded(exit, run);
    else listener.orphans()?.forget(run.id);
  });
  runs.on('empty', ({ id }) => {
    const worker = listener.ownerOf(id);
    if (worker !== null) worker.resync();
    else listener.orphans()?.forget(id);
  });
  runs.on('started', (run) => {
    // Asked by a supervisor that died before it was told.
    if (listener.ownerOf(run.id) === null) listener.orphans()?.take(run);
  });
  runs.on('notify', (run, text) => listener.ownerOf(run.id)?.onNotify(run, text));
  runs.on('restarted', () => {
    listener.onReopened();
  });
  runs.on('error', (error) => {
    listener.onLost(error);
  });
}
