import { join } from 'node:path';

import { asExitwatchError } from '../common/errors.js';
import { makeFolder } from '../memory/state-folder.js';
import { addonRefusal, loadAddon } from '../native/load-addon.js';
import { keeperBinary } from '../supervisor/keeper/keeper-process.js';

/**
 * As the first process of a container: becomes the keeper, which starts this command again as its child,
 * and keeps it alive. What the kernel gives to the first process is the keeper's then: the signals for the
 * container, and the processes that have lost their parent.
 *
 * Returns only if that is not possible: why.
 *
 * @param folder of the supervisor
 * @param command this one, from the start
 */
export function becomeGuard(folder: string, command: readonly string[]): string {
  try {
    const refusal = addonRefusal();
    if (refusal !== null) throw refusal;
    const binary = keeperBinary();
    const keeperFolder = join(folder, 'keeper');
    makeFolder(keeperFolder);
    const env = Object.entries(process.env).map(([name, value]) => `${name}=${value ?? ''}`);
    return loadAddon().exec(binary, [binary, 'guard', keeperFolder, ...command], env);
  } catch (error) {
    return asExitwatchError(error).message;
  }
}
