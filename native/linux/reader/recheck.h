#ifndef EXITWATCH_LINUX_READER_RECHECK_H_
#define EXITWATCH_LINUX_READER_RECHECK_H_

#include <cstdint>

#include "core/groups/thread_group_aggregator.h"

namespace exitwatch {

enum class Rechecked {
  kAlive,
  kEnded,
  kUnknown,  // could not be determined
};

// Looks at a process whose exit may have been lost. Passes it to the aggregator if it has exited,
// or may do so unseen. `alive_ns`: when it was known to be alive.
Rechecked Recheck(const GroupIdentity& identity, uint64_t alive_ns, ProcessWitness& witness,
                  ThreadGroupAggregator& aggregator);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_RECHECK_H_
