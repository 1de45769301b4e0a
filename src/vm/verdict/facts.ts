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
  if (initialPhase !== null) add('status', `it was ${initialPhase.said} when we came`);
  for (const { said, at } of events) add('event', said, at);
  if (!eventsComplete) add('event', 'events may be missing');
  if (lastPhase !== null) add('status', `it was ${lastPhase.said} when it was asked last`);
  for (const line of lastWords) add('log', `it says: ${line}`);
  if (obeyed !== null) {
    const from = obeyed.pid === null ? '' : ` from pid ${obeyed.pid}`;
    const path = obeyed.path === null ? '' : ` (${obeyed.path})`;
    add('log', `it says to have obeyed ${obeyed.signal ?? 'a signal'}${from}${path}`);
  }
  if (intents === null) add('intent', 'what we were about to do is not known');
  for (const { what, why, at, outcome } of intents ?? []) {
    add('intent', `we were about to: ${what}${why === null ? '' : ` (${why})`}, ${outcome}`, at);
  }
  for (const sender of exit?.signalsReceived ?? []) {
    const from = sender.pid === null ? sender.origin : `${sender.pid} (${sender.name})`;
    add('signal', `${sender.signal} from ${from}`, sender.sentAt);
  }
  if (exit !== null) add('exit', describeExit(exit), exit.exitedAt);
  for (const [name, isLeft] of Object.entries(leftovers)) {
    if (isLeft !== null) add('files', `its ${name} is ${isLeft ? 'left' : 'gone'}`);
  }
  return facts;
}

export function describeExit(exit: ExitEvent): string {
  switch (exit.how) {
    case 'exited':
      return `it exited with ${exit.exitCode}`;
    case 'killed':
    case 'dumped':
      return `it was killed by ${exit.signal}${exit.oom === true ? ', for want of memory' : ''}`;
    case 'unknown':
      return `how it ended is not known (${exit.unknownReason})`;
  }
}
