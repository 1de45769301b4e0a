/**
 * What signal 0 reveals about a pid. `'gone'` only if the pid is unused: `'there'` includes
 * zombies, and other users' processes that may not be signalled.
 */
export function signalZero(pid: number): 'there' | 'gone' | 'unknown' {
  try {
    process.kill(pid, 0);
    return 'there';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EPERM' ? 'there' : code === 'ESRCH' ? 'gone' : 'unknown';
  }
}
