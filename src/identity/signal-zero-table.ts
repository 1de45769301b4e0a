import type { ProcessTable, Lookup } from './process-table.js';
import { signalZero } from './signal-zero.js';

/** The last resort (Windows): signal 0 shows that a pid is in use, and nothing else. */
export class SignalZeroTable implements ProcessTable {
  readonly by = 'signal 0';
  readonly startTolerance = 0;

  lookNow(pid: number): Lookup | null {
    const answer = signalZero(pid);
    if (answer === 'gone') return null;
    if (answer === 'unknown') return 'unknown';
    return {
      pid,
      parentPid: null,
      groupId: null,
      sessionId: null,
      name: null,
      uid: null,
      startTicks: null,
      isDead: false,
      isKernelThread: false,
    };
  }

  look(pids: readonly number[]): Promise<Map<number, Lookup>> {
    const seen = new Map<number, Lookup>();
    for (const pid of pids) {
      const lookup = this.lookNow(pid);
      if (lookup !== null) seen.set(pid, lookup);
    }
    return Promise.resolve(seen);
  }

  list(): Promise<Map<number, Lookup>> {
    return Promise.reject(new Error('signal 0 cannot list processes'));
  }

  startTime(startTicks: number): Date {
    return new Date(startTicks * 10);
  }
}
