import { addonRefusal } from '../native/load-addon.js';

import { AutoSource } from './auto-source.js';
import { failureDowngrade } from './downgrade.js';
import type { ExitSource, SourceListener } from './exit-source.js';
import { KernelSource } from './kernel-source.js';
import { PollSource } from './poll-source.js';

type Options = ConstructorParameters<typeof KernelSource>[0] &
  ConstructorParameters<typeof PollSource>[0] & {
    source: 'auto' | 'connector' | 'pidfd' | 'poll';
  };

/** The source that these options ask for; `'auto'`: the best there is. */
export function openSource(options: Options, listener: SourceListener): ExitSource {
  if (options.source === 'poll') return new PollSource(options, listener, null);
  if (options.source !== 'auto') return new KernelSource(options, listener);
  const refusal = addonRefusal();
  if (refusal === null) return new AutoSource(options, listener);
  return new PollSource(options, listener, failureDowngrade(refusal));
}
