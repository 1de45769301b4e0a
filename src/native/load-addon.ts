import { ExitwatchError } from '../common/errors.js';

import { ABI_DIGEST } from './abi.js';
import { warnOfMissingAddon } from './addon-warning.js';
import type { Addon } from './addon.js';
import { loadNativeBinary } from './load-binary.js';

/** Loading is tried once. */
let result: Addon | ExitwatchError | undefined;

/** @throws ExitwatchError `ERR_EXITWATCH_NO_ADDON` if no binary can be used. */
export function loadAddon(): Addon {
  result ??= loadOrWarn();
  if (result instanceof ExitwatchError) throw result;
  return result;
}

/** Why the addon cannot be used; `null` if it can. */
export function addonRefusal(): ExitwatchError | null {
  result ??= loadOrWarn();
  return result instanceof ExitwatchError ? result : null;
}

/** On Linux a missing addon is worth a warning; on other systems there is none. */
function loadOrWarn(): Addon | ExitwatchError {
  if (process.platform !== 'linux') {
    return new ExitwatchError(
      'ERR_EXITWATCH_NO_ADDON',
      `the native addon is for Linux only, not for ${process.platform}`,
    );
  }
  const loaded = load();
  if (loaded instanceof ExitwatchError) warnOfMissingAddon(loaded);
  return loaded;
}

function load(): Addon | ExitwatchError {
  const { bun } = process.versions;
  if (bun !== undefined) {
    return new ExitwatchError(
      'ERR_EXITWATCH_NO_ADDON',
      `Bun ${bun} lacks uv_poll of libuv, which the native addon requires, and exits when it is called`,
      { remedy: 'use Node.js' },
    );
  }
  const isUsable = (binary: unknown) => (binary as Partial<Addon>).abi === ABI_DIGEST;
  const { binary, tried, isBundled } = loadNativeBinary(isUsable);
  if (binary !== undefined) return binary as Addon;
  const reasons = tried.map(({ path, failure }) => `${path} ${failure}`).join('; ');
  return new ExitwatchError(
    'ERR_EXITWATCH_NO_ADDON',
    `no native addon for ${process.platform}-${process.arch} can be loaded: ${reasons}`,
    { remedy: isBundled ? BUNDLE_REMEDY : BUILD_REMEDY },
  );
}

const BUILD_REMEDY =
  'run `npx exitwatch build-native`, which requires a C++ compiler, make and Python 3';

const BUNDLE_REMEDY =
  'exclude exitwatch from the bundle, or copy its folder prebuilds next to the bundle: ' +
  'see docs/bundlers.md in the package';
