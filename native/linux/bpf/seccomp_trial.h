#ifndef EXITWATCH_LINUX_BPF_SECCOMP_TRIAL_H_
#define EXITWATCH_LINUX_BPF_SECCOMP_TRIAL_H_

namespace exitwatch {

enum class SeccompTrial {
  kHarmless,
  kDeadly,
  kNoChild,  // see errno
};

// Whether this process would end by what `attempt` does: a seccomp filter may answer a system call
// with an errno, or with the end of the process, as systemd's SystemCallFilter= does. Another
// process tries it out, where there is a filter; `attempt` may do system calls only.
SeccompTrial TryWithSeccomp(void (*attempt)());

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_SECCOMP_TRIAL_H_
