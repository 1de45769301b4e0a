import type { ExitEvent } from '../../events/exit-event.js';
import type { VmEvidence } from '../evidence/vm-evidence.js';

import type { Evidence } from './vm-verdict.js';

/** What is known about an end, as single facts for people to read. */
export function factsOf(evidence: VmEvidence): Evidence[] {
  const { events, eventsComplete, exit, initialPhase, intents, lastPhase } = evidence;
  const { lastWords, leftovers, obeyed } = evidence;
  const facts: Evidence[] = [];
  const add = (source: Evidence['source'], text: string, at: Date | null = null) => {
    facts.push({ source, text, at });
  };
  if (initialPhase !== null) add('status', `its first known status was ${initialPhase.said}`);
  for (const { said, at } of events) add('event', said, at);
  if (!eventsComplete) add('event', 'events may be missing');
  if (lastPhase !== null) add('status', lastStatus(lastPhase.said));
  for (const line of lastWords) add('log', `it logged: ${line}`);
  if (obeyed !== null) {
    const from = obeyed.pid === null ? '' : ` from pid ${obeyed.pid}`;
    const path = obeyed.path === null ? '' : ` (${obeyed.path})`;
    add('log', `it logged that it obeyed ${obeyed.signal ?? 'a signal'}${from}${path}`);
  }
  if (intents === null) add('intent', 'our intents are unknown');
  for (const { what, why, at, outcome } of intents ?? []) {
    add('intent', `we intended: ${what}${why === null ? '' : ` (${why})`}, ${outcome}`, at);
  }
  for (const sender of exit?.signalsReceived ?? []) {
    const from = sender.pid === null ? sender.origin : `${sender.pid} (${sender.name})`;
    add('signal', `${sender.signal} from ${from}`, sender.sentAt);
  }
  if (exit !== null) add('exit', describeExit(exit), exit.exitedAt);
  for (const [name, isLeft] of Object.entries(leftovers)) {
    if (isLeft !== null) add('files', `its ${name} ${isLeft ? 'still exists' : 'is gone'}`);
  }
  return facts;
}

/** The fact that tells a status, as `shouldRestart` looks for it. */
export function lastStatus(said: string): string {
  return `its last known status was ${said}`;
}

export function describeExit(exit: ExitEvent): string {
  switch (exit.how) {
    case 'exited':
      return `it exited with ${exit.exitCode}`;
    case 'killed':
    case 'dumped':
      return `it was killed by ${exit.signal}${exit.oom === true ? ' because memory ran out' : ''}`;
    case 'unknown':
      return `how it ended is unknown (${exit.unknownReason})`;
  }
}
