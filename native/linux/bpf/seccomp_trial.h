#ifndef EXITWATCH_LINUX_BPF_SECCOMP_TRIAL_H_
#define EXITWATCH_LINUX_BPF_SECCOMP_TRIAL_H_

namespace exitwatch {

enum class SeccompTrial {
  kHarmless,
  kDeadly,
  kNoChild,  // see errno
};

// Whether `attempt` would kill this process: a seccomp filter may answer a system call with an
// errno, or by killing the process, like systemd's SystemCallFilter=. If there is a filter, a child
// tries it out. `attempt` must only make system calls.
SeccompTrial TryWithSeccomp(void (*attempt)());

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_SECCOMP_TRIAL_H_
