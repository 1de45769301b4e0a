import { getSystemErrorName } from 'node:util';

import { ExitwatchError } from '../common/errors.js';
import type { Downgrade } from '../events/exit-event.js';
import { Refusal } from '../native/abi.js';
import type { NativeRefusal } from '../native/addon.js';
import { NO_TRIAL } from '../trace/trial.js';

type Explanation = readonly [code: Downgrade['code'], detail: string, remedy: string | null];

const CAPABILITIES =
  'give it CAP_BPF and CAP_PERFMON: AmbientCapabilities= in a systemd unit, --cap-add for a ' +
  'container, setcap on a node of its own, or run it as root';

const EXPLANATIONS: Readonly<Record<Exclude<keyof typeof Refusal, 'none'>, Explanation>> = {
  notWanted: ['cbpf-requested', 'EXITWATCH_FILTER=cbpf asks for the cBPF one', 'unset it'],
  noCapabilities: [
    'no-capabilities',
    'the process has neither CAP_BPF nor CAP_PERFMON',
    CAPABILITIES,
  ],
  noBpf: ['no-cap-bpf', 'the process has CAP_PERFMON, but not CAP_BPF', CAPABILITIES],
  noPerfmon: ['no-cap-perfmon', 'the process has CAP_BPF, but not CAP_PERFMON', CAPABILITIES],
  blocked: [
    'bpf-blocked',
    'bpf(2) is refused in spite of the capabilities: by a seccomp filter or a security module',
    "allow bpf(2): SystemCallFilter= in a systemd unit, a container's seccomp profile",
  ],
  confidential: [
    'kernel-confidential',
    'the kernel is locked down to "confidentiality", and lets no program read its memory',
    'kernel_lockdown(7) tells how a system gets there; "integrity" is enough for most',
  ],
  noBtf: [
    'no-btf',
    'the kernel does not describe its types: /sys/kernel/btf/vmlinux cannot be used',
    'mount sysfs on /sys, or run a kernel built with CONFIG_DEBUG_INFO_BTF',
  ],
  otherKernel: [
    'kernel-lacks',
    'this kernel lacks something that it takes',
    'Linux 5.10 or later has it',
  ],
  refused: ['verifier-refused', "the kernel's verifier refuses the program", 'please report this'],
  system: ['system', 'a system call failed', null],
  foreignPid: [
    'foreign-pid-namespace',
    "the kernel tells of signals by the pids of the host's pid namespace, and this is another one",
    "run it in the host's: --pid=host for a container",
  ],
  lockedMemory: [
    'memlock-limit',
    'before Linux 5.11 BPF programs count as locked memory, of which the limit leaves too little',
    'raise it: LimitMEMLOCK=infinity in a systemd unit, --ulimit memlock=-1 for a container, ' +
      'ulimit -l unlimited',
  ],
  noTrial: [NO_TRIAL.code, NO_TRIAL.detail, NO_TRIAL.remedy],
};

/** Why a BPF program (the eBPF filter or the signal trace) is not in use; `null` if it is. */
export function bpfDowngrade({ refusal, errno, detail }: NativeRefusal): Downgrade | null {
  if (refusal === Refusal.none) return null;
  const [code, sentence, remedy] = EXPLANATIONS[Refusal[refusal] as keyof typeof EXPLANATIONS];
  const error = errno === 0 ? '' : getSystemErrorName(-errno);
  const particulars = [detail, error].filter((part) => part !== '').join(': ');
  return { code, detail: particulars === '' ? sentence : `${sentence} (${particulars})`, remedy };
}

/** Why there is no signal trace with polling. */
export const POLLING_DOWNGRADE: Downgrade = {
  code: 'polling',
  detail: 'the process table is polled, which tells of no signals',
  remedy: null,
};

/** Why the connector is not in use. */
export function failureDowngrade({ code, detail, remedy }: ExitwatchError): Downgrade {
  return { code, detail, remedy: remedy ?? null };
}

/** The error if the signal trace is required but cannot run. */
export function noTraceError(reason: Downgrade | null): ExitwatchError {
  const detail = reason?.detail ?? 'there is none';
  return new ExitwatchError('ERR_EXITWATCH_NO_TRACE', `no signal trace: ${detail}`, {
    remedy: reason?.remedy ?? undefined,
  });
}
