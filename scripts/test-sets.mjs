import { join } from 'node:path';

const isIn =
  (...starts) =>
  (path) =>
    starts.some((start) => path.startsWith(join('test', start)));

/** Of the soak tests, `npm test` runs those of the ways to end. */
const ONCE = isIn('soak/deaths.', 'soak/senders.');

/** The test files of each command, by path from the root of the repository. */
export const SETS = {
  default: (path) => !isIn('e2e/', 'package/', 'soak/')(path) || ONCE(path),
  e2e: isIn('e2e/'),
  package: isIn('package/'),
  /** CI runs a part of these: see ci-parts.mjs. */
  rotating: isIn('package/native-core.', 'package/bundlers.', 'package/types.', 'e2e/stories.'),
  soak: isIn('soak/', 'sources/pidfd.', 'identity/pid-reuse.'),
};
