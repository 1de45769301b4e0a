/** Who owns a file, and who may write to it, as stat(2) has it. */
export interface FileOwnership {
  uid: number;
  mode: number;
}

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;

/** Root and the user we are; and those that are named, as far as they are known. */
export function trustedOwners(...others: readonly (number | null | undefined)[]): number[] {
  return [0, process.geteuid?.(), ...others].filter((uid) => uid != null);
}

/** Whether group or others can write to it. Windows has no such modes. */
export function isWritableByOthers({ mode }: Pick<FileOwnership, 'mode'>): boolean {
  return process.platform !== 'win32' && (mode & (GROUP_WRITES | OTHERS_WRITE)) !== 0;
}

/**
 * Why a file is not to be believed; `null` if nothing is against it. What it says is as good as anybody who
 * may have written it.
 *
 * @param owners who may own it, as {@link trustedOwners} makes it; `null`: anybody
 * @param writers who may have write access beside its owner: `'group'` is for what a program of another
 *   owner writes by its own umask
 */
export function distrustOf(
  { uid, mode }: FileOwnership,
  owners: readonly number[] | null = trustedOwners(),
  writers: 'owner' | 'group' = 'owner',
): string | null {
  if (process.platform === 'win32') return null;
  if (owners?.includes(uid) === false) return `is user ${uid}'s`;
  if (writers === 'owner' && isWritableByOthers({ mode })) {
    return 'can be written by others than its owner';
  }
  return (mode & OTHERS_WRITE) === 0 ? null : 'can be written by everybody';
}
