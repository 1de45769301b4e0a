import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

import { identify, type ProcessIdentity } from '../../identity/process-identity.js';

/** A process that lives, and the names that it goes by. */
export interface ListedProcess {
  identity: ProcessIdentity;
  /** The kernel's name; at most 15 bytes, untrusted. */
  name: string;
  /**
   * The executable's file name; where that cannot be read (others', without privilege), what the
   * process was called by. `null` where neither is known.
   */
  executable: string | null;
}

/** All processes but kernel threads. */
export function* listProcesses(): Generator<ListedProcess> {
  for (const entry of readdirSync('/proc')) {
    if (!/^[1-9]\d*$/.test(entry)) continue;
    try {
      const name = readFileSync(`/proc/${entry}/comm`, 'utf8').replace(/\n$/, '');
      const executable = executableName(entry);
      const identity = identify(Number(entry));
      if (identity !== null) yield { identity, name, executable };
    } catch {
      continue; // it ended, or is hidden
    }
  }
}

/** Throws where it cannot be read. */
export function executableName(pid: string): string | null {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, '');
  } catch {
    const [called = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return called === '' ? null : basename(called);
  }
}
