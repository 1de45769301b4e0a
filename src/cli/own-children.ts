import type { ExitEvent } from '../events/exit-event.js';

/** A look at `process.pid` takes longer than all else here. */
const OWN_PID = process.pid;

/** When this process started, by CLOCK_MONOTONIC, in ns. */
export const STARTED_NS = Number(process.hrtime.bigint()) - process.uptime() * 1e9;

/**
 * Whether a child of this process ended. The recorder also has ends from before our start: then the
 * parent was an earlier process with our pid, as always in a container.
 */
export function isOwnChild(
  { parentPid, exitedNs }: Pick<ExitEvent, 'parentPid' | 'exitedNs'>,
  startedNs = STARTED_NS,
): boolean {
  return parentPid === OWN_PID && (exitedNs === null || exitedNs >= startedNs);
}
