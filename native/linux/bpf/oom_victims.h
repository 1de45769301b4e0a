#ifndef EXITWATCH_LINUX_BPF_OOM_VICTIMS_H_
#define EXITWATCH_LINUX_BPF_OOM_VICTIMS_H_

#include <cstdint>
#include <vector>

#include "abi/signal_record.h"

namespace exitwatch {

// The processes that the OOM killer has chosen lately. It kills those that share the memory of a
// victim as well, but does not mark them.
class OomVictims {
 public:
  // Adds a victim, or flags a signal that killed one which shares a victim's memory; to be called
  // with all records in their order.
  void OnRecord(SignalRecord* record);

 private:
  struct Victim {
    uint64_t memory;
    uint64_t time_ns;
    int32_t by_thread;
    uint64_t by_start;
  };

  bool IsOfVictim(const SignalRecord& record) const;

  std::vector<Victim> victims_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_OOM_VICTIMS_H_
