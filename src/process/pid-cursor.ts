import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

/** More forks, of processes and threads, than a processor does in a millisecond. */
const FORKS_PER_MS = 50;

/** Pids below are given once, at boot (RESERVED_PIDS). */
const RESERVED_PIDS = 300;

/** How far the kernel had come with giving pids, at a moment. */
export interface PidMark {
  lastPid: number;
  atMs: number;
}

/**
 * Tells whether a pid may have been given to somebody else since a moment. The kernel gives pids in their
 * order and begins anew at the end, so that a pid which it has not come by is still the same one's, or
 * nobody's; so are the session and the group that have it for a name. Who sets pids by hand
 * (ns_last_pid, clone3 with set_tid), as criu does, is not seen.
 */
export class PidCursor {
  /** No sooner than that it has given all pids. */
  readonly #longestMs =
    (Number(readFileSync('/proc/sys/kernel/pid_max', 'latin1')) - RESERVED_PIDS) /
    (FORKS_PER_MS * cpus().length);

  mark(): PidMark {
    const lastPid = /(\d+)\s*$/.exec(readFileSync('/proc/loadavg', 'latin1'))?.[1];
    return { lastPid: Number(lastPid), atMs: performance.now() };
  }

  /** Whether a pid may have been given between two moments. */
  mayHaveBeenGiven(pid: number, from: PidMark, to: PidMark): boolean {
    if (this.mayHaveBegunAnew(from, to)) return true;
    return from.lastPid <= to.lastPid
      ? pid > from.lastPid && pid <= to.lastPid
      : pid > from.lastPid || pid <= to.lastPid;
  }

  /** Whether every pid may have been given between two moments. */
  mayHaveBegunAnew(from: PidMark, to: PidMark): boolean {
    return !(to.atMs - from.atMs < this.#longestMs);
  }
}
