import { evidenceOf } from '../evidence/vm-evidence.js';
import { judge } from '../verdict/judge.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import type { StopEvidence } from './stop-evidence.js';
import { testimonyOf } from './testimony.js';

/**
 * Why a QEMU ended, judged by evidence that you pass: the verdict of a `VmMonitor`, without its
 * witnesses.
 *
 * @see [Verdicts](../../../docs/virtual-machines.md#verdicts)
 */
export function classifyStop(evidence: StopEvidence): VmVerdict {
  const { name, exit, intents, leftovers, ...said } = evidence;
  return judge({
    ...evidenceOf(
      { name, exit, intents, pidfileIsLeft: leftovers.pidfile },
      { ...testimonyOf(said, exit), socketIsLeft: leftovers.socket },
    ),
    // `undefined` (nobody looked for an agent) differs from `null` (unknown).
    agent: said.agent,
  });
}
