import { ExitwatchError } from '../common/errors.js';
import { processTable } from '../identity/platform-table.js';
import type { Lookup } from '../identity/process-table.js';

/**
 * @throws ExitwatchError `ERR_EXITWATCH_REFUSED` if this is the pid of init, of this process, or of
 *   one of its ancestors: their trees include this process
 */
export function refuseOurLine(pid: number): void {
  if (pid !== 1 && !ourLine().includes(pid)) return;
  const who =
    pid === 1
      ? 'init'
      : pid === process.pid
        ? 'this process itself'
        : 'an ancestor of this process';
  throw new ExitwatchError(
    'ERR_EXITWATCH_REFUSED',
    `process ${pid} is ${who}: its tree contains this process`,
    { remedy: 'stop it from outside its tree, or without its tree' },
  );
}

/** Our own pid and those of our ancestors. */
function ourLine(): readonly number[] {
  const pids: number[] = [];
  let pid: number | null = process.pid;
  while (pid !== null && pid > 0 && !pids.includes(pid)) {
    pids.push(pid);
    const lookup: Lookup | null = processTable().lookNow(pid);
    pid = lookup === null || lookup === 'unknown' ? null : lookup.parentPid;
  }
  return pids;
}
