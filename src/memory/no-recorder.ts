import { ExitwatchError } from '../common/errors.js';
import type { Downgrade } from '../events/exit-event.js';

/** Why there is no recorder. */
export class NoRecorder extends Error {
  readonly downgrade: Downgrade;

  constructor(downgrade: Downgrade) {
    super(downgrade.detail);
    this.downgrade = downgrade;
  }
}

/** Why there is no recorder; throws what says nothing about that. */
export function refuseNoRecorder(error: unknown): Downgrade {
  if (error instanceof NoRecorder) return error.downgrade;
  if (error instanceof ExitwatchError) {
    return { code: error.code, detail: error.detail, remedy: error.remedy ?? null };
  }
  throw error;
}
