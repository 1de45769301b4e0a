import type { JournalExit } from './rows.js';

/** A moment that an end tells of. */
export interface Moment {
  bootId: string;
  /** By the wall clock of then, in ms. */
  wallMs: number;
  /** By CLOCK_MONOTONIC, in ms; `null`: the end has no stamp of the kernel. */
  monotonicMs: number | null;
}

/** `at`: a time in this end, for example when its signal was sent. */
export function momentOf({ id, exitedAt, exitedNs }: JournalExit, at: Date = exitedAt): Moment {
  const wallMs = at.getTime();
  const agoMs = exitedAt.getTime() - wallMs;
  return {
    bootId: bootOf(id),
    wallMs,
    monotonicMs: exitedNs === null ? null : exitedNs / 1e6 - agoMs,
  };
}

export function startOf(end: JournalExit): Moment {
  return momentOf(end, end.startedAt ?? end.exitedAt);
}

/**
 * From one moment to the other, in ms: by the clock that nobody sets, if both are known by it. `NaN`: they are of different
 * boots, whose clocks need not agree.
 */
export function msBetween(one: Moment, other: Moment): number {
  if (one.bootId !== other.bootId) return NaN;
  if (one.monotonicMs === null || other.monotonicMs === null) return other.wallMs - one.wallMs;
  return other.monotonicMs - one.monotonicMs;
}

export function areWithin(one: Moment, other: Moment, ms: number): boolean {
  return Math.abs(msBetween(one, other)) <= ms;
}

/** The first part of an id. */
export function bootOf(id: string): string {
  return id.split('-', 1).join();
}
