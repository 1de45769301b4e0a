import type { Filter } from '../../src';

import { HAS_CONNECTOR, MAY_LISTEN } from './kernel';

/** The environment in which a monitor uses this filter. */
export function environmentFor(filter: Filter): NodeJS.ProcessEnv {
  return { ...process.env, EXITWATCH_FILTER: filter === 'cbpf' ? 'cbpf' : undefined };
}

/**
 * Declares the same tests for both forms of the filter. Outside CI they are skipped if there is no
 * connector. The eBPF filter needs root; before Linux 6.6 both do.
 */
export function describeForEachFilter(body: (filter: Filter) => void): void {
  for (const filter of ['ebpf', 'cbpf'] as const) {
    const isPermitted = filter === 'cbpf' ? MAY_LISTEN : process.getuid?.() === 0;
    const isUsable = (HAS_CONNECTOR && isPermitted) || process.env['CI'];
    const lacks = HAS_CONNECTOR ? 'root' : 'the host’s network namespace';
    const title = `with the ${filter} filter${isUsable ? '' : ` (needs ${lacks})`}`;
    (isUsable ? describe : describe.skip)(title, () => {
      beforeAll(() => {
        if (filter === 'cbpf') process.env['EXITWATCH_FILTER'] = 'cbpf';
      });
      afterAll(() => {
        delete process.env['EXITWATCH_FILTER'];
      });
      body(filter);
    });
  }
}
