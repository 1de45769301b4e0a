/** The owner and the mode of a file, as in stat(2). */
export interface FileOwnership {
  uid: number;
  mode: number;
}

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;

/** Root, the current user, and the given users, as far as they are known. */
export function trustedOwners(...others: readonly (number | null | undefined)[]): number[] {
  return [0, process.geteuid?.(), ...others].filter((uid) => uid != null);
}

/** Whether its group or others can write it. Windows has no such modes. */
export function isWritableByOthers({ mode }: Pick<FileOwnership, 'mode'>): boolean {
  return process.platform !== 'win32' && (mode & (GROUP_WRITES | OTHERS_WRITE)) !== 0;
}

/**
 * Why a file cannot be trusted; `null` if nothing speaks against it. A file is only as trustworthy
 * as every user who may have written it.
 *
 * @param owners users who may own it, from {@link trustedOwners}; `null`: any user
 * @param writers who may have write access: `'owner'` alone, or the `'group'` too, for files that a
 *   program of another owner writes with its own umask
 */
export function distrustOf(
  { uid, mode }: FileOwnership,
  owners: readonly number[] | null = trustedOwners(),
  writers: 'owner' | 'group' = 'owner',
): string | null {
  if (process.platform === 'win32') return null;
  if (owners?.includes(uid) === false) return `belongs to user ${uid}`;
  if (writers === 'owner' && isWritableByOthers({ mode })) {
    return 'is writable by users other than its owner';
  }
  return (mode & OTHERS_WRITE) === 0 ? null : 'is writable by everyone';
}
