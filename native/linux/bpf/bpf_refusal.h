#ifndef EXITWATCH_LINUX_BPF_BPF_REFUSAL_H_
#define EXITWATCH_LINUX_BPF_BPF_REFUSAL_H_

#include <string>

#include "abi/failure.h"

namespace exitwatch {

// Why a BPF program of ours cannot be used.
struct BpfRefusal {
  using Reason = Refusal;

  Reason reason = Reason::kNone;
  int number = 0;      // errno
  std::string detail;  // a field, a system call, or the verifier's message

  explicit operator bool() const { return reason != Reason::kNone; }
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_BPF_REFUSAL_H_
