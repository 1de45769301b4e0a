import { getSystemErrorName } from 'node:util';

import type { Downgrade } from '../events/exit-event.js';
import type { SignalSender } from '../events/signal-event.js';
import { type SignalName, signalNumber } from '../events/wait-status.js';
import { SignalFlag, TRIAL_CHILD_NAME } from '../native/abi.js';
import type { NativeTrial } from '../native/addon.js';
import { SignalRecords, type TracedSignal } from '../native/signal-records.js';

import { isAmbiguous, originOf } from './signal-sender.js';

type Origin = SignalSender['origin'];

/** A signal that the trial's child is sent: native/linux/system/trial_child.h. */
interface Way {
  signal: SignalName;
  by: string;
  origin: Origin;
  /** Sent to the process, not to a thread. */
  isForGroup: boolean;
}

/** The value sent with `rt_sigqueueinfo(2)`. */
const VALUE = 0x5eed0001;

const WAYS: readonly Way[] = [
  { signal: 'SIGTERM', by: 'kill(2)', origin: 'kill', isForGroup: true },
  { signal: 'SIGINT', by: 'tgkill(2)', origin: 'tgkill', isForGroup: false },
  { signal: 'SIGUSR1', by: 'rt_sigqueueinfo(2)', origin: 'sigqueue', isForGroup: true },
  { signal: 'SIGUSR2', by: 'a forged timer', origin: 'sigqueue', isForGroup: true },
  { signal: 'SIGHUP', by: 'F_SETSIG', origin: 'sigio', isForGroup: true },
  { signal: 'SIGQUIT', by: 'PR_SET_PDEATHSIG', origin: 'parent-death', isForGroup: true },
  { signal: 'SIGPIPE', by: 'a broken pipe', origin: 'kernel', isForGroup: false },
  { signal: 'SIGALRM', by: 'setitimer(2)', origin: 'timer', isForGroup: true },
  { signal: 'SIGVTALRM', by: 'timer_create(2)', origin: 'timer', isForGroup: true },
];

/** Kernels that cannot tell its origin are fine: then no sender is reported for it. */
const AMBIGUOUS: SignalName = 'SIGHUP';

/** The trial could not take place. @internal */
export const NO_TRIAL = {
  code: 'no-trial',
  detail: 'the self-test with a child process could not run',
  remedy: 'allow one more process: pids.max of the cgroup, RLIMIT_NPROC, the seccomp filter',
} as const satisfies Downgrade;

/** Origins with a sender, which is this process. */
const BY_US: readonly Origin[] = ['kill', 'tgkill', 'sigqueue', 'sigio', 'parent-death'];

/**
 * Why the signal trace is not trusted; `null` if every signal came back as it was sent. @internal
 */
export function judgeTrial(trial: NativeTrial): Downgrade | null {
  if (trial.errno !== 0) {
    const error = `${trial.syscall}: ${getSystemErrorName(-trial.errno)}`;
    return { ...NO_TRIAL, detail: `${NO_TRIAL.detail} (${error})` };
  }
  const records = new SignalRecords(trial.records);
  const signals = Array.from({ length: records.capacity }, (_, index) => records.signal(index));
  for (const way of WAYS) {
    const wrong = whatIsWrong(way, signals, trial);
    if (wrong === null) continue;
    return {
      code: 'trial-failed',
      detail: `the signal trace failed its self-test on this kernel: ${way.signal} from ${way.by} ${wrong}`,
      remedy: 'please report this, with the output of uname -a',
    };
  }
  return null;
}

function whatIsWrong(
  way: Way,
  signals: readonly TracedSignal[],
  trial: NativeTrial,
): string | null {
  const [signal, ...others] = signals.filter((each) => each.signal === signalNumber(way.signal));
  if (signal === undefined) return 'was not seen';
  if (others.length > 0) return 'was seen several times';
  if (isAmbiguous(signal))
    return way.signal === AMBIGUOUS ? null : 'cannot be distinguished from other signals';
  const origin = originOf(signal);
  if (origin !== way.origin) return `was seen as ${origin}`;
  const has = (flag: SignalFlag) => (signal.flags & flag) !== 0;
  if (has(SignalFlag.group) !== way.isForGroup)
    return 'was seen with the wrong scope (thread or process)';
  if (!isOfChild(signal, trial)) return 'was seen at another process';
  if (BY_US.includes(origin) && !isByUs(signal, trial)) return 'was seen from another process';
  return hasInfo(signal, origin) ? null : 'was seen with a different siginfo';
}

function isOfChild(signal: TracedSignal, { pid, startTicks, inode }: NativeTrial): boolean {
  return (
    signal.pid === pid &&
    signal.thread === pid &&
    (startTicks === 0 || signal.startTicks === startTicks) &&
    (signal.inode === 0 || signal.inode === inode) &&
    signal.name === TRIAL_CHILD_NAME &&
    (signal.flags & SignalFlag.blocked) !== 0
  );
}

function isByUs(signal: TracedSignal, trial: NativeTrial): boolean {
  return (
    signal.senderPid === process.pid &&
    signal.senderThread === trial.senderThread &&
    signal.senderPidThere === process.pid &&
    signal.senderUid === trial.senderUid &&
    signal.senderName === trial.senderName &&
    (signal.ancestors[0]?.pid ?? 0) === trial.senderParent
  );
}

/** Whether the siginfo is right, if there is one. */
function hasInfo({ flags, info }: TracedSignal, origin: Origin): boolean {
  if ((flags & (SignalFlag.noInfo | SignalFlag.infoLost)) !== 0) return true;
  switch (origin) {
    case 'kill':
    case 'tgkill':
      return info[0] === process.pid;
    case 'sigqueue':
      return info[0] === process.pid && info[2] === VALUE && info[3] === VALUE;
    default:
      return true;
  }
}
