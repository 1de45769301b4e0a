/**
 * What signal 0 says of a pid: `'gone'` only where nobody has it. A process of somebody else, which
 * may not be signalled, is there; so is a zombie.
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
