import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, isAbsolute } from 'node:path';

/** The kernel keeps this much of a name (TASK_COMM_LEN). */
const KERNEL_NAME_BYTES = 15;

/** What a process is called; each `null` where it cannot be read. */
interface Names {
  /** The kernel's name. */
  kernel: string | null;
  /** The path of its executable, which takes the same user or CAP_SYS_PTRACE. */
  path: string | null;
  /** What it was called by: the first argument. */
  called: string | null;
}

/**
 * Whether the process with this pid runs this executable: a path, or a file name, in full also where
 * the kernel's name is cut. `'unknown'` where what can be read does not tell.
 */
export function runs(pid: number, executable: string): boolean | 'unknown' {
  const names = namesOf(pid);
  if (isAbsolute(executable)) {
    if (names.path !== null) return names.path === executable;
    return names.called !== null && !isAbsolute(names.called) ? 'unknown' : namesMatch();
  }
  return namesMatch();

  function namesMatch(): boolean | 'unknown' {
    const wanted = basename(executable);
    const full = [names.path, names.called].filter((name) => name !== null);
    // A login shell is called by its name with a dash before it.
    if (full.some((name) => basename(name).replace(/^-/, '') === wanted)) return true;
    const cut = Buffer.from(wanted).subarray(0, KERNEL_NAME_BYTES).toString();
    // One of this length is cut, most likely: of what, the others tell.
    const mayBeCut = Buffer.byteLength(wanted) === KERNEL_NAME_BYTES && full.length > 0;
    if (cut === wanted && names.kernel === wanted && !mayBeCut) return true;
    if (full.length > 0) return false;
    // All but the kernel's name is hidden: another one is another program's, the same may be.
    return names.kernel !== null && names.kernel !== cut ? false : 'unknown';
  }
}

function namesOf(pid: number): Names {
  const task = livingTask(pid);
  return {
    kernel: read(() => readFileSync(`/proc/${pid}/comm`, 'utf8').replace(/\n$/, '')),
    path: read(() => readlinkSync(`/proc/${task}/exe`).replace(/ \(deleted\)$/, '')),
    called: read(() => readFileSync(`/proc/${task}/cmdline`, 'utf8').split('\0')[0] ?? ''),
  };
}

/** The first thread may have left before the others: it has neither executable nor arguments then. */
function livingTask(pid: number): string {
  const isLiving = (task: string) =>
    /^[^ZX]/.test(readFileSync(`/proc/${task}/stat`, 'latin1').replace(/^.*\) /s, ''));
  const first = String(pid);
  try {
    if (isLiving(first)) return first;
    const tasks = readdirSync(`/proc/${pid}/task`).map((thread) => `${pid}/task/${thread}`);
    return tasks.find(isLiving) ?? first;
  } catch {
    return first; // it has ended meanwhile
  }
}

function read(of: () => string): string | null {
  try {
    const text = of();
    return text === '' ? null : text;
  } catch {
    return null;
  }
}
