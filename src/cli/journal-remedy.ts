import { ExitwatchError } from '../common/errors.js';

/** How to get a journal, as a remedy for having none. */
export function withJournalRemedy(error: unknown): unknown {
  if (!(error instanceof ExitwatchError) || error.code !== 'ERR_EXITWATCH_NO_JOURNAL') return error;
  const remedy = 'run "exitwatch record --install" as root, or give --state-dir';
  return new ExitwatchError(error.code, error.detail, { remedy, cause: error });
}
