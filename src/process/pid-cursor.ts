import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** More forks, of processes and threads, than a processor can do in a millisecond. */
const FORKS_PER_MS = 50;

/** Pids below this are only assigned at boot (RESERVED_PIDS). */
const RESERVED_PIDS = 300;

/** The last pid that the kernel had assigned at some time. */
export interface PidMark {
  lastPid: number;
  atMs: number;
}

/**
 * Detects whether a pid may have been reused since a mark. The kernel assigns pids in order and
 * wraps around, so a pid that it has not passed still belongs to the same process, or to none; so
 * do the session and the group of that number. Pids set by hand, as criu does (ns_last_pid, clone3
 * with set_tid), are not detected.
 */
export class PidCursor {
  /** The kernel needs at least this long to assign every pid once. */
  readonly #longestMs =
    (Number(readFileSync('/proc/sys/kernel/pid_max', 'latin1')) - RESERVED_PIDS) /
    (FORKS_PER_MS * cpus().length);

  mark(): PidMark {
    const lastPid = /(\d+)\s*$/.exec(readFileSync('/proc/loadavg', 'latin1'))?.[1];
    return { lastPid: Number(lastPid), atMs: performance.now() };
  }

  /** Whether a pid may have been assigned between two marks. */
  mayHaveBeenGiven(pid: number, from: PidMark, to: PidMark): boolean {
    if (this.mayHaveBegunAnew(from, to)) return true;
    return from.lastPid <= to.lastPid
      ? pid > from.lastPid && pid <= to.lastPid
      : pid > from.lastPid || pid <= to.lastPid;
  }

  /** Whether every pid may have been assigned between two marks. */
  mayHaveBegunAnew(from: PidMark, to: PidMark): boolean {
    return !(to.atMs - from.atMs < this.#longestMs);
  }
}
