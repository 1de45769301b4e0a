import type { VmEvidence } from '../evidence/vm-evidence.js';

import { ORDERLY } from './causes.js';
import { beforeReady } from './rules/before-ready.js';
import { byExit } from './rules/exited.js';
import { byGuestState } from './rules/guest-state.js';
import { bySignal } from './rules/killed.js';
import { byShutdown } from './rules/shutdown.js';
import { StopCase } from './stop-case.js';
import type { VmVerdict } from './vm-verdict.js';

/** In order: the first rule that has an answer decides. */
const RULES: readonly ((one: StopCase) => VmVerdict | null)[] = [
  beforeReady,
  byGuestState,
  byShutdown,
  bySignal,
  byExit,
];

/**
 * Judges by all the evidence why a virtual machine ended. The hypervisor's first shutdown event
 * counts most; without one, the exit status and the senders of signals decide. If several
 * explanations fit equally well, none is chosen: all are candidates.
 */
export function judge(evidence: VmEvidence): VmVerdict {
  const one = new StopCase(evidence);
  for (const rule of RULES) {
    const verdict = rule(one);
    if (verdict !== null) return verdict;
  }
  return one.verdict.unknown([...ORDERLY, 'killed', 'oom-killed', 'vmm-crash']);
}
