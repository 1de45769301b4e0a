import { ASK_MS } from './contact.js';
import type { ServicePhase } from './service-events.js';
import type { ServiceWorker } from './service-worker.js';

/**
 * @see [Services](../../../docs/services.md)
 */
export type SupervisorMetrics = {
  /** Services that were applied and not removed. */
  desired: number;
  /** Services with a run. */
  active: number;
  phases: Record<ServicePhase, number>;
  /** Starts that took the place of another run, by the reason of the decision. */
  restarts: Record<string, number>;
  /** Runs that nobody desired. */
  orphaned: number;
  /** Those of them that are not gone yet. */
  orphans: number;
  /** Since when the oldest request waits to be served, in ms; `null`: none waits. */
  oldestRequestMs: number | null;
  /** The longest time from a request to its begin, in ms. */
  longestLatencyMs: number;
  /** How often is looked for what was not told, at the latest, in ms. */
  resyncMs: number;
  /** Files that were written. */
  writes: number;
};

const PHASES = [
  ...(['waiting', 'starting', 'running', 'paused', 'backoff', 'stopping'] as const),
  ...(['stopped', 'ended', 'failed'] as const),
] satisfies ServicePhase[];

/** What a supervisor has counted since its start. */
export class Counters {
  readonly #restarts: Record<string, number> = {};
  #longestLatencyMs = 0;

  countRestart(reason: string): void {
    this.#restarts[reason] = (this.#restarts[reason] ?? 0) + 1;
  }

  countLatency(ms: number): void {
    this.#longestLatencyMs = Math.max(this.#longestLatencyMs, ms);
  }

  metrics(
    workers: readonly ServiceWorker[],
    now: number,
    counts: Pick<SupervisorMetrics, 'orphaned' | 'orphans' | 'writes'>,
  ): SupervisorMetrics {
    const phases = Object.fromEntries(PHASES.map((phase) => [phase, 0])) as Record<
      ServicePhase,
      number
    >;
    for (const { phase } of workers) phases[phase]++;
    const waiting = workers.flatMap((worker) => worker.requestedAtMs ?? []);
    return {
      desired: workers.filter(({ isLeaving }) => !isLeaving).length,
      active: workers.filter(({ runId }) => runId !== null).length,
      phases,
      restarts: { ...this.#restarts },
      oldestRequestMs: waiting.length === 0 ? null : now - Math.min(...waiting),
      longestLatencyMs: this.#longestLatencyMs,
      resyncMs: ASK_MS,
      ...counts,
    };
  }
}
