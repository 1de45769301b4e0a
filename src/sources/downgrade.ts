import { getSystemErrorName } from 'node:util';

import { ExitwatchError } from '../common/errors.js';
import type { Downgrade } from '../events/exit-event.js';
import { Refusal } from '../native/abi.js';
import type { NativeRefusal } from '../native/addon.js';
import { NO_TRIAL } from '../trace/trial.js';

type Explanation = readonly [code: Downgrade['code'], detail: string, remedy: string | null];

const CAPABILITIES =
  'grant CAP_BPF and CAP_PERFMON: AmbientCapabilities= in a systemd unit, --cap-add for a ' +
  'container, setcap on a separate copy of node; or run as root';

const EXPLANATIONS: Readonly<Record<Exclude<keyof typeof Refusal, 'none'>, Explanation>> = {
  notWanted: ['cbpf-requested', 'EXITWATCH_FILTER=cbpf requests the cBPF filter', 'unset it'],
  noCapabilities: [
    'no-capabilities',
    'the process has neither CAP_BPF nor CAP_PERFMON',
    CAPABILITIES,
  ],
  noBpf: ['no-cap-bpf', 'the process has CAP_PERFMON, but not CAP_BPF', CAPABILITIES],
  noPerfmon: ['no-cap-perfmon', 'the process has CAP_BPF, but not CAP_PERFMON', CAPABILITIES],
  blocked: [
    'bpf-blocked',
    'a seccomp filter or a security module blocks bpf(2), despite the capabilities',
    "allow bpf(2) in SystemCallFilter= of a systemd unit or in a container's seccomp profile",
  ],
  confidential: [
    'kernel-confidential',
    'the kernel is locked down in "confidentiality" mode, so no program may read kernel memory',
    'use "integrity" mode, which is enough for most systems: see kernel_lockdown(7)',
  ],
  noBtf: [
    'no-btf',
    "the kernel's type information (BTF), /sys/kernel/btf/vmlinux, cannot be used",
    'mount sysfs on /sys, or use a kernel with CONFIG_DEBUG_INFO_BTF',
  ],
  otherKernel: ['kernel-lacks', 'this kernel lacks a required feature', 'use Linux 5.10 or later'],
  refused: ['verifier-refused', "the kernel's verifier rejects the program", 'please report this'],
  system: ['system', 'a system call failed', null],
  foreignPid: [
    'foreign-pid-namespace',
    "the signal trace works only in the host's pid namespace; this process is in another one",
    'use --pid=host for a container',
  ],
  lockedMemory: [
    'memlock-limit',
    'before Linux 5.11, BPF programs count as locked memory, and the limit is too low for them',
    'raise the limit: LimitMEMLOCK=infinity in a systemd unit, --ulimit memlock=-1 for a container, ' +
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
  detail: 'exitwatch polls the process table, which does not show signals',
  remedy: null,
};

/** Why the connector is not in use. */
export function failureDowngrade({ code, detail, remedy }: ExitwatchError): Downgrade {
  return { code, detail, remedy: remedy ?? null };
}

/** The error if the signal trace is required but cannot run. */
export function noTraceError(reason: Downgrade | null): ExitwatchError {
  const detail = reason?.detail ?? 'unknown reason';
  return new ExitwatchError('ERR_EXITWATCH_NO_TRACE', `no signal trace: ${detail}`, {
    remedy: reason?.remedy ?? undefined,
  });
}
