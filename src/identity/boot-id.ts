import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { ExitwatchError } from '../common/errors.js';

/** Used where boots cannot be told apart. */
const UNKNOWN = '00000000-0000-0000-0000-000000000000';

let current: string | undefined;

/** The id of this boot of this machine. */
export function bootId(): string {
  current ??= readBootId();
  return current;
}

function readBootId(): string {
  switch (process.platform) {
    case 'linux':
      return readLinuxBootId();
    case 'win32':
      return UNKNOWN;
    case 'darwin':
      return sysctl('kern.bootsessionuuid').toLowerCase() || UNKNOWN;
    default:
      // `{ sec = 1763710000, usec = 1 } …`, or only the seconds.
      return /\d{6,}/.exec(sysctl('kern.boottime'))?.[0] ?? UNKNOWN;
  }
}

function readLinuxBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch (cause) {
    throw new ExitwatchError('ERR_EXITWATCH_NO_PROC', '/proc/sys does not exist', {
      cause,
      remedy: 'mount all of /proc, without subset=pid (ProcSubset=pid in a systemd unit)',
    });
  }
}

function sysctl(name: string): string {
  try {
    return execFileSync('sysctl', ['-n', name], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return '';
  }
}
