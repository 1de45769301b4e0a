import { evidenceOf } from '../evidence/vm-evidence.js';
import { judge } from '../verdict/judge.js';
import type { VmVerdict } from '../verdict/vm-verdict.js';

import type { StopEvidence } from './stop-evidence.js';
import { testimonyOf } from './testimony.js';

/** Why a QEMU ended, by all that is known of it: the verdict of a `VmMonitor` alone, without its witnesses. */
export function classifyStop(evidence: StopEvidence): VmVerdict {
  const { name, exit, intents, leftovers, ...said } = evidence;
  return judge({
    ...evidenceOf(
      { name, exit, intents, pidfileIsLeft: leftovers.pidfile },
      { ...testimonyOf(said, exit), socketIsLeft: leftovers.socket },
    ),
    // That nobody has looked for one is not the same as that nothing is known of it.
    agent: said.agent,
  });
}
