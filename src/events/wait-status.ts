import { ExitwatchError } from '../common/errors.js';

/**
 * A signal as `child_process` names it. Real-time signals count from the C library's `SIGRTMIN`,
 * which is 34: it reserves 32 and 33, so these appear by number.
 *
 * @see [Events](../../docs/events.md)
 */
export type SignalName = NodeJS.Signals | `SIGRTMIN+${number}` | 'SIG32' | 'SIG33';

/**
 * How a process ended, in the terms of waitid(2).
 *
 * @see [Wait for one process](../../docs/wait-for-one.md)
 */
export type WaitStatus =
  | { how: 'exited'; exitCode: number; signal: null; coreDumped: false }
  | { how: 'killed'; exitCode: null; signal: SignalName; coreDumped: false }
  | { how: 'dumped'; exitCode: null; signal: SignalName; coreDumped: true };

/**
 * The numbers of Linux on x86 and ARM, signal(7). If two names share a number, this is the name
 * that child_process uses.
 */
const NAMES: readonly NodeJS.Signals[] = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGKILL',
  'SIGUSR1',
  'SIGSEGV',
  'SIGUSR2',
  'SIGPIPE',
  'SIGALRM',
  'SIGTERM',
  'SIGSTKFLT',
  'SIGCHLD',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGURG',
  'SIGXCPU',
  'SIGXFSZ',
  'SIGVTALRM',
  'SIGPROF',
  'SIGWINCH',
  'SIGIO',
  'SIGPWR',
  'SIGSYS',
];

const SIGRTMIN = 34;
const SIGRTMAX = 64;

/** The name of a signal number; `null` if Linux has no such signal. */
export function signalName(number: number): SignalName | null {
  if (number === 32) return 'SIG32';
  if (number === 33) return 'SIG33';
  if (Number.isInteger(number) && number >= SIGRTMIN && number <= SIGRTMAX) {
    return `SIGRTMIN+${number - SIGRTMIN}`;
  }
  return NAMES[number - 1] ?? null;
}

/** The number of a signal name; the inverse of {@link signalName}. 0: there is none. @internal */
export function signalNumber(name: SignalName): number {
  const realTime = /^SIGRTMIN\+(0|[1-9]\d?)$/.exec(name);
  if (realTime !== null) {
    const number = SIGRTMIN + Number(realTime[1]);
    return number <= SIGRTMAX ? number : 0;
  }
  if (name === 'SIG32') return 32;
  if (name === 'SIG33') return 33;
  return NAMES.indexOf(name as NodeJS.Signals) + 1;
}

/** Signals for which the kernel may write a core: signal(7). */
const CORE_SIGNALS: readonly SignalName[] = [
  ...(['SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const),
  ...(['SIGXCPU', 'SIGXFSZ', 'SIGSYS'] as const),
];

/** Whether the kernel may have written a core when this signal killed a process. @internal */
export function mayDumpCore(signal: SignalName): boolean {
  return CORE_SIGNALS.includes(signal);
}

/**
 * Decodes the wait status of a process that has ended, as returned by waitpid(2): `code << 8`, or
 * the number of the signal, plus 0x80 if a core was written. The kernel calls it "exit code".
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_WAIT_STATUS` for any other number, such as the
 *   status of a stopped or continued process.
 * @see [Wait for one process](../../docs/wait-for-one.md)
 */
export function decodeWaitStatus(status: number): WaitStatus {
  if (Number.isInteger(status) && status >= 0 && status <= 0xffff) {
    const low = status & 0xff;
    if (low === 0) {
      return { how: 'exited', exitCode: status >> 8, signal: null, coreDumped: false };
    }
    const signal = signalName(low & 0x7f);
    if (status === low && signal !== null) {
      return (low & 0x80) === 0
        ? { how: 'killed', exitCode: null, signal, coreDumped: false }
        : { how: 'dumped', exitCode: null, signal, coreDumped: true };
    }
  }
  throw new ExitwatchError(
    'ERR_EXITWATCH_INVALID_WAIT_STATUS',
    `${String(status)} is not the wait status of an ended process`,
  );
}
