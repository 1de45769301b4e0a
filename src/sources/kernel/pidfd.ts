import { ExitwatchError } from '../../common/errors.js';
import { translateFailure } from '../../native/failures.js';
import { addonRefusal, loadAddon } from '../../native/load-addon.js';
import type { SourceKind } from '../source-kind.js';
import { type PidfdReport, obstacleOf } from '../source-report.js';

import { KernelSource } from './kernel-source.js';

/**
 * A pidfd for each watched process, and nothing else. Works without privileges and in containers.
 */
export const PIDFD: SourceKind<PidfdReport> = {
  name: 'pidfd',
  title: 'pidfd',
  fallback: 'poll',
  hasFallbackWithin: false,
  tellsStatus: true,
  tellsAll: false,
  tellsSignals: true,
  // A pidfd is silent until its process has exited.
  longestSilenceMs: () => null,
  refusal: addonRefusal,
  open: (options, listener) => new KernelSource(options, listener),
  serves: (scope, { available }) => available && scope === 'watched',
  probe() {
    try {
      const found = loadAddon().probePidfd();
      return Promise.resolve({ available: true, obstacle: null, ...found });
    } catch (thrown) {
      const error = translateFailure(thrown);
      if (!(error instanceof ExitwatchError)) throw error;
      const obstacle = obstacleOf(error);
      return Promise.resolve({ available: false, obstacle, inodes: false, exitStatus: false });
    }
  },
};
