import { isObject } from '../../common/is-object.js';
import { setTimeout } from 'node:timers/promises';

import type { IntentOutcome, IntentRecorder } from '../../process/intent-log.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';

import type { QmpClient } from './qmp-client.js';
import { withQmp } from './qmp-driver.js';

/** Options of {@link migrate}. */
export interface MigrateOptions {
  /** Its QMP socket, for us alone. */
  socket: string;
  /** The process that must listen there; `null`: any. */
  owner: number | null;
  /** The destination, in QEMU's terms: `tcp:HOST:PORT`, … */
  uri: string;
  /** How long the migration may take, in ms. */
  timeoutMs: number;
  intentLog: IntentRecorder;
  reason: string | null;
  /** Called when the status changes, and every few seconds. */
  onProgress: (progress: MigrationProgress) => void;
}

/** Progress of a migration. */
export type MigrationProgress = {
  /** QEMU's own word: `'setup'`, `'active'`, … */
  status: string;
  /** Guest memory still to be sent, in bytes; `null` if unknown. */
  remainingBytes: number | null;
  totalBytes: number | null;
};

/** How a migration ended. */
export type Migration = {
  /** `'timed-out'`: it may still be running. */
  outcome: 'completed' | 'failed' | 'cancelled' | 'timed-out';
  /** What the hypervisor says about it; `null`: nothing. */
  reason: string | null;
  /** Its id in the intent log. */
  intent: string;
  /** What failed on the way without changing the outcome. */
  warnings: string[];
};

/** How often its status is asked for, and reported. */
const LOOK_MS = 100;
const REPORT_MS = 5000;

/** Characters to keep of the hypervisor's own words. */
const MOST_REASON = 500;

const ENDS = ['completed', 'failed', 'cancelled'] as const;

/**
 * Migrates a virtual machine. Resolves when that has completed, failed, timed out or was cancelled;
 * what is left of the machine here stays, paused or running. First makes QEMU report migrations as
 * events, and writes an intent.
 *
 * Rejects as {@link withQmp} does, and with an {@link ExitwatchError} `ERR_EXITWATCH_QMP`,
 * `ERR_EXITWATCH_INTENT_LOG`.
 */
export function migrate(identity: ProcessIdentity, options: MigrateOptions): Promise<Migration> {
  const { socket, owner, uri, timeoutMs, intentLog, reason, onProgress } = options;
  return withQmp(socket, owner, undefined, async (client) => {
    const capabilities = [{ capability: 'events', state: true }];
    await client.execute('migrate-set-capabilities', { capabilities });
    const begin = performance.now();
    const deadline = new Date(Date.now() + timeoutMs);
    // A command (`exec:`) or a descriptor (`fd:`) may lead to a file, too, but nothing says so.
    const what = uri.startsWith('file:') ? 'save' : 'migrate';
    const intent = await intentLog.append({ identity, what, deadline, why: reason });
    const warnings: string[] = [];
    let outcome: IntentOutcome | null = 'uncertain';
    try {
      await begun(client, uri, () => (outcome = 'not-delivered'));
      const end = await ended(client, begin + timeoutMs, onProgress);
      outcome = OUTCOMES[end.outcome];
      return { ...end, intent, warnings };
    } finally {
      if (outcome !== null) {
        await intentLog.settle(intent, outcome).catch((error: unknown) => {
          warnings.push((error as Error).message);
        });
      }
    }
  });
}

/** A migration that has timed out may still take effect: its intent stays open. */
const OUTCOMES: Record<Migration['outcome'], IntentOutcome | null> = {
  ...{ completed: 'delivered', failed: 'not-delivered', cancelled: 'not-delivered' },
  'timed-out': null,
};

async function begun(client: QmpClient, uri: string, refused: () => void): Promise<void> {
  try {
    await client.execute('migrate', { uri });
  } catch (error) {
    // It may have begun all the same, if only the answer was late.
    const { status } = await look(client);
    const isOver = status === 'none' || ENDS.some((each) => each === status);
    if (!isOver) return;
    // This may be the status of an earlier migration, or of this one.
    if (status !== 'completed') refused();
    throw error;
  }
}

async function ended(
  client: QmpClient,
  deadlineMs: number,
  onProgress: MigrateOptions['onProgress'],
): Promise<Pick<Migration, 'outcome' | 'reason'>> {
  let reportedAt = -Infinity;
  let reported = '';
  for (;;) {
    const { reason, ...progress } = await look(client);
    const end = ENDS.find((each) => each === progress.status);
    if (end !== undefined) return { outcome: end, reason };
    const now = performance.now();
    if (now >= deadlineMs)
      return { outcome: 'timed-out', reason: `its status is ${progress.status}` };
    if (progress.status !== reported || now - reportedAt >= REPORT_MS) {
      reportedAt = now;
      reported = progress.status;
      onProgress(progress);
    }
    await setTimeout(LOOK_MS);
  }
}

async function look(client: QmpClient): Promise<MigrationProgress & { reason: string | null }> {
  const answer = await client.execute('query-migrate');
  const fields = isObject(answer) ? answer : {};
  const ram = isObject(fields['ram']) ? fields['ram'] : {};
  const bytes = (name: string) => (typeof ram[name] === 'number' ? ram[name] : null);
  const reason = fields['error-desc'];
  return {
    // QEMU omits it if there was no migration.
    status: typeof fields['status'] === 'string' ? fields['status'] : 'none',
    remainingBytes: bytes('remaining'),
    totalBytes: bytes('total'),
    reason: typeof reason === 'string' ? reason.slice(0, MOST_REASON) : null,
  };
}
