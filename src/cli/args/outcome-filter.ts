import { requestBefore } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';

/** Which ends to select by how they went. */
export interface OutcomeCriteria {
  /** Only those that did not exit with 0, or did so because a signal had asked them to. */
  failed: boolean;
  /** Only those that a signal killed. */
  killed: boolean;
}

export function hasOutcome(event: ExitEvent, { failed, killed }: OutcomeCriteria): boolean {
  if (failed && hasSucceeded(event)) return false;
  return !killed || event.signal !== null;
}

/** It exited with 0, and no signal had asked it to. */
function hasSucceeded(event: ExitEvent): boolean {
  return event.how === 'exited' && event.exitCode === 0 && requestBefore(event) === null;
}
