import { randomUUID } from 'node:crypto';

import type { Intent, IntentOutcome, IntentRecorder } from '../../process/intent-log.js';

/** Keeps the intents of this process alone, for use without a log. */
export class IntentMemory implements IntentRecorder {
  readonly intents: Intent[] = [];

  append({
    identity,
    what,
    deadline,
    why = null,
  }: Parameters<IntentRecorder['append']>[0]): Promise<string> {
    const id = randomUUID();
    const who = { identity: null, uid: process.geteuid?.() ?? null };
    this.intents.push({
      ...{
        event: 'intent',
        id,
        at: new Date(),
        identity,
        what,
        why,
        who,
        deadline,
        outcome: 'pending',
      },
    });
    return Promise.resolve(id);
  }

  settle(id: string, outcome: IntentOutcome): Promise<void> {
    const intent = this.intents.find((each) => each.id === id);
    if (intent !== undefined) intent.outcome = outcome;
    return Promise.resolve();
  }
}
