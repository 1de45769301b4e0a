import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

/** As many bytes of arguments as BPF programs read. */
const MOST_BYTES = 4064;

/** Fields of proc_pid_stat(5) after the name, which may contain spaces and parentheses. */
const ARG_START = 45;
const ARG_END = 46;

/** What the memory of a process has between the bounds of its arguments. */
export interface RunningArguments {
  bytes: Buffer;
  /** There are more. */
  isCut: boolean;
}

/**
 * The arguments of a process that runs, as far as BPF programs read them; `null` if unknown.
 *
 * Where a program has overwritten the NUL of its last argument, /proc/PID/cmdline goes on into the
 * environment (get_mm_cmdline() of the kernel); what is told ends at the bound of the arguments.
 */
export function runningArguments(pid: number, uid: number | null): RunningArguments | null {
  // The memory of a process may be what another one provides at its leisure (userfaultfd(2)).
  if (uid !== 0 && uid !== process.geteuid?.()) return null;
  try {
    const bounds = boundsOf(pid);
    if (bounds === null) return null;
    const bytes = readBegin(`/proc/${pid}/cmdline`, Math.min(bounds.length, MOST_BYTES));
    // Another program, or prctl(2), may have moved them while they were read.
    const after = boundsOf(pid);
    if (after?.start !== bounds.start || after.length !== bounds.length) return null;
    return { bytes, isCut: bounds.length > MOST_BYTES };
  } catch {
    return null; // it has ended
  }
}

/** Where the arguments are; `null`: the kernel does not tell us. */
function boundsOf(pid: number): { start: bigint; length: number } | null {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const start = BigInt(fields[ARG_START] ?? 0);
  const end = BigInt(fields[ARG_END] ?? 0);
  return start === 0n || end <= start ? null : { start, length: Number(end - start) };
}

function readBegin(path: string, length: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, readSync(file, bytes));
  } finally {
    closeSync(file);
  }
}
