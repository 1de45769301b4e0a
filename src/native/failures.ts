import { readFileSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';

import { ExitwatchError, type ExitwatchErrorCode } from '../common/errors.js';

import { Failure } from './abi.js';

type Explanation = readonly [code: ExitwatchErrorCode, sentence: string, remedy?: string];

/** What is wrong, and what to do about it. */
const FAILURES: Readonly<Record<Exclude<keyof typeof Failure, 'none'>, Explanation>> = {
  system: ['ERR_EXITWATCH_SYSTEM', 'a system call failed'],
  foreignNetwork: [
    'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE',
    "the proc connector works only in the host's network namespace; this process is in another one",
    'use --network=host for a container',
  ],
  foreignPid: [
    'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE',
    "the proc connector works only in the host's pid namespace; this process is in another one",
    'use --pid=host for a container',
  ],
  foreignUser: [
    'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE',
    "the proc connector works only in the host's user namespace; this process is in another one",
    'use a container that is not rootless',
  ],
  notPermitted: [
    'ERR_EXITWATCH_NOT_PERMITTED',
    'before Linux 6.6, the proc connector requires root or CAP_NET_ADMIN on the host',
    'grant CAP_NET_ADMIN, or use Linux 6.6 or later',
  ],
  noConnector: [
    'ERR_EXITWATCH_NO_CONNECTOR',
    'this kernel was built without the proc connector',
    'use a kernel with CONFIG_CONNECTOR and CONFIG_PROC_EVENTS',
  ],
  noPidfd: [
    'ERR_EXITWATCH_NO_PIDFD',
    'pidfd_open(2) is missing or forbidden',
    'use Linux 5.3 or later, and allow it in the seccomp filter',
  ],
  noProc: [
    'ERR_EXITWATCH_NO_PROC',
    '/proc is not mounted, hides this process, or belongs to another pid namespace',
    'mount /proc of this pid namespace, without hidepid',
  ],
  silent: [
    'ERR_EXITWATCH_SILENT',
    'the kernel accepted the subscription but sends no events: it was built without process ' +
      'events, or another program switched them off for the whole host',
    'use a kernel with CONFIG_PROC_EVENTS, or find the program that switched them off',
  ],
  descriptorLimit: [
    'ERR_EXITWATCH_DESCRIPTOR_LIMIT',
    'too few file descriptors are left for another watch, which requires one here',
    'raise RLIMIT_NOFILE: LimitNOFILE= in a systemd unit, --ulimit nofile= for a container, ulimit -n',
  ],
};

/** The soft limit that the kernel has for this process. */
function descriptorLimit(): string {
  const limits = readFileSync('/proc/self/limits', 'latin1');
  return /^Max open files\s+(\S+)/m.exec(limits)?.[1] ?? 'unknown';
}

/** The error for a failure that the addon threw as `{ failure, errno, syscall }`. */
export function failureError(failure: number, errno: number, syscall: string): ExitwatchError {
  const name = Failure[failure] as keyof typeof FAILURES;
  const [code, sentence, remedy] = FAILURES[name];
  const detail =
    code === 'ERR_EXITWATCH_SYSTEM'
      ? `${syscall}: ${getSystemErrorName(-errno)}`
      : code === 'ERR_EXITWATCH_DESCRIPTOR_LIMIT'
        ? `${sentence} (RLIMIT_NOFILE is ${descriptorLimit()})`
        : sentence;
  return new ExitwatchError(code, detail, { remedy, errno, syscall });
}

/** Translates what the addon threw; leaves other errors as they are. */
export function translateFailure(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !('failure' in thrown)) return thrown;
  const { failure, errno, syscall } = thrown as Error & Record<string, unknown>;
  return failureError(Number(failure), Number(errno), String(syscall));
}
