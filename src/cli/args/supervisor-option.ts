import { resolve } from 'node:path';

import { defaultStateDir, superviseDir } from '../supervise-dirs.js';

/** Which supervisor is meant. */
export const STATE_DIR_OPTION = {
  'state-dir': { type: 'string', default: defaultStateDir() },
} as const;

export const STATE_DIR_HELP = `  --state-dir DIR  the directory of the supervisor (default: /var/lib/exitwatch; of
                   an ordinary user ~/.local/state/exitwatch)`;

/** The folder of the supervisor. */
export function askedDir(values: { 'state-dir': string }): string {
  return superviseDir(resolve(values['state-dir']));
}
