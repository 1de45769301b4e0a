import { signalName } from '../../events/wait-status.js';
import type { ObeyedSignal } from '../evidence/vm-evidence.js';

/** What QEMU logs when it obeys a signal (os-posix.c, softmmu/runstate.c). */
const TERMINATING = /terminating on signal (\d+)(?: from pid (\d+)(?: \((.*)\))?)?\s*$/;

/** The last signal that QEMU says it obeyed; `null`: none. */
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
