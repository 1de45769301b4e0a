import { bootId } from '../../identity/boot-id.js';
import { pidNamespace } from '../../identity/process-identity.js';
import { processTable } from '../../identity/platform-table.js';

let current: string | undefined;

/**
 * Names the boot that services live in: that of the machine; in a container also the start of its first
 * process, because a container that is started again has lost all its processes as a machine has.
 */
export function boot(): string {
  current ??=
    pidNamespace() === null ? bootId() : `${bootId()}/${startOfFirst() ?? pidNamespace()}`;
  return current;
}

function startOfFirst(): number | null {
  try {
    const first = processTable().lookNow(1);
    return first === null || first === 'unknown' ? null : first.startTicks;
  } catch {
    return null;
  }
}
