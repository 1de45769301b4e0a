import { homedir } from 'node:os';
import { join } from 'node:path';

import { DEFAULT_STATE_DIR } from './journal-dirs.js';

/** Where `supervise` keeps everything, unless told otherwise: an ordinary user cannot write root's. */
export function defaultStateDir(env: NodeJS.ProcessEnv = process.env): string {
  if (process.geteuid?.() === 0) return DEFAULT_STATE_DIR;
  const base = env['XDG_STATE_HOME'];
  return join(base?.startsWith('/') === true ? base : join(homedir(), '.local/state'), 'exitwatch');
}

/** The supervisor's own folder: `record` and `vm daemon` may use the same directory. */
export function superviseDir(stateDir: string): string {
  return join(stateDir, 'supervise');
}
