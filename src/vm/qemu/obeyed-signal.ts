import type { SignalName } from '../../events/wait-status.js';
import { signalName } from '../../events/wait-status.js';

/** What QEMU writes when it obeys a signal (os-posix.c, softmmu/runstate.c). */
const TERMINATING = /terminating on signal (\d+)(?: from pid (\d+)(?: \((.*)\))?)?\s*$/;

/** A signal that QEMU says to have obeyed. */
export type ObeyedSignal = {
  signal: SignalName | null;
  /** As the siginfo had it: it may be forged, and is missing where the sender had no pid here. */
  pid: number | null;
  /** Of the sender's executable. */
  path: string | null;
};

/** The last signal that it says to have obeyed; `null`: none. */
export function obeyedSignal(lines: readonly string[]): ObeyedSignal | null {
  for (const line of [...lines].reverse()) {
    const match = TERMINATING.exec(line);
    if (match === null) continue;
    const [, number, pid, path = null] = match;
    return {
      signal: signalName(Number(number)),
      pid: pid === undefined ? null : Number(pid),
      path: path === '<unknown process>' ? null : path,
    };
  }
  return null;
}
