import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

import { pids } from '../../identity/pids.js';
import { identify, type ProcessIdentity } from '../../identity/process-identity.js';

/** A living process and its names. */
export interface ListedProcess {
  identity: ProcessIdentity;
  /** The kernel's name for it: at most 15 bytes, untrusted. */
  name: string;
  /**
   * The executable's file name or, if that cannot be read (another user's process, without
   * privileges), argv[0]. `null` if neither is known.
   */
  executable: string | null;
}

/** All processes except kernel threads. */
export function* listProcesses(): Generator<ListedProcess> {
  for (const pid of pids()) {
    try {
      const name = readFileSync(`/proc/${pid}/comm`, 'utf8').replace(/\n$/, '');
      const executable = executableName(String(pid));
      const identity = identify(pid);
      if (identity !== null) yield { identity, name, executable };
    } catch {
      continue; // it has exited, or is hidden
    }
  }
}

/** Throws if it cannot be read. */
export function executableName(pid: string): string | null {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, '');
  } catch {
    const [called = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return called === '' ? null : basename(called);
  }
}
