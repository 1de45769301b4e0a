#include "linux/bpf/bpf_program.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "linux/bpf/bpf_permission.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/bpf/locked_memory.h"

namespace exitwatch {

namespace {

using Reason = BpfRefusal::Reason;

// The line in which the verifier says what is wrong: the last one before its statistics.
std::string LastWords(const std::string& log) {
  size_t end = log.find("\nprocessed ");
  if (end == std::string::npos) end = log.find_last_not_of('\n') + 1;
  const size_t newline = end == 0 ? std::string::npos : log.rfind('\n', end - 1);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return log.substr(begin, end - begin);
}

}  // namespace

BpfRefusal BpfSystemRefusal(const char* what) {
  const int error = errno;
  std::string limit;
  if (error == EPERM && !bpf::IsForbidden() && IsLockedMemoryShort(&limit)) {
    return {Reason::kLockedMemory, error, limit};
  }
  if (error == EPERM || error == EACCES || error == ENOSYS) return {Reason::kBlocked, error, what};
  return {Reason::kSystem, error, what};
}

BpfRefusal LoadBpfProgram(const char* name, uint32_t type, const std::vector<bpf_insn>& program,
                          UniqueFd* loaded, uint32_t function) {
  std::string log;
  *loaded = bpf::LoadProgram(name, type, program, function, &log);
  if (*loaded) return {};
  const int error = errno;
  if (log.empty()) return BpfSystemRefusal("BPF_PROG_LOAD");
  // "cannot use helper", or "unknown func" before Linux 6.8: our capabilities do not allow the
  // helper. "invalid func": the kernel is too old for it.
  const bool lacks_helper = log.find("cannot use helper") != std::string::npos ||
                            log.find("unknown func") != std::string::npos ||
                            log.find("invalid func") != std::string::npos;
  if (lacks_helper && IsKernelConfidential()) return {Reason::kConfidential, error, ""};
  return {lacks_helper ? Reason::kOtherKernel : Reason::kRefused, error, LastWords(log)};
}

size_t RoundUpToRingBytes(size_t bytes) {
  auto power = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  while (power < bytes) power *= 2;
  return power;
}

}  // namespace exitwatch
