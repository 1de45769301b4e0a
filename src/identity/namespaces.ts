import { statSync } from 'node:fs';

/**
 * Inodes of the initial namespaces: PROC_PID_INIT_INO, PROC_USER_INIT_INO of the kernel's
 * proc_ns.h.
 */
export const HOST_NAMESPACE = { pid: 0xeffffffc, user: 0xeffffffd } as const;

/** The inode of this process's namespace; `null` if unknown. */
export function namespaceInode(name: 'pid' | 'user'): number | null {
  try {
    return statSync(`/proc/self/ns/${name}`).ino;
  } catch {
    return null;
  }
}
