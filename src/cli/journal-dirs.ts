import { join } from 'node:path';

/** Where `record` keeps everything, unless told otherwise. */
export const DEFAULT_STATE_DIR = '/var/lib/exitwatch';

/** The directory of the journal. */
export function journalDir(stateDir: string): string {
  return join(stateDir, 'journal');
}

/** Where the monitor of `record` remembers. */
export function recorderDir(stateDir: string): string {
  return join(stateDir, 'recorder');
}
