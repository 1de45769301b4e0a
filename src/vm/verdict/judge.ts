import type { VmEvidence } from '../evidence/vm-evidence.js';

import { ORDERLY } from './causes.js';
import { beforeReady } from './rules/before-ready.js';
import { byExit } from './rules/exited.js';
import { byGuestState } from './rules/guest-state.js';
import { bySignal } from './rules/killed.js';
import { byShutdown } from './rules/shutdown.js';
import { StopCase } from './stop-case.js';
import type { VmVerdict } from './vm-verdict.js';

/** The first that has an answer gives it. */
const RULES: readonly ((one: StopCase) => VmVerdict | null)[] = [
  beforeReady,
  byGuestState,
  byShutdown,
  bySignal,
  byExit,
];

/**
 * Why a virtual machine ended, by all that is known of it. The hypervisor's first word on it counts most;
 * where it has none, how its process ended, and who sent it signals. Of several explanations that fit, none
 * is chosen: they are the candidates.
 */
export function judge(evidence: VmEvidence): VmVerdict {
  const one = new StopCase(evidence);
  for (const rule of RULES) {
    const verdict = rule(one);
    if (verdict !== null) return verdict;
  }
  return one.verdict.unknown([...ORDERLY, 'killed', 'oom-killed', 'vmm-crash']);
}
