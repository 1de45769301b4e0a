#ifndef EXITWATCH_LINUX_RECORDER_RECORDER_PARTS_H_
#define EXITWATCH_LINUX_RECORDER_RECORDER_PARTS_H_

#include "linux/system/unique_fd.h"

namespace exitwatch {

// What a recorder consists of in the kernel. All of it can be pinned, or handed to another process.
struct RecorderParts {
  struct Maps {
    UniqueFd about;
    UniqueFd state;
    UniqueFd trace_state;  // a SignalTraceState
    UniqueFd watched;
    UniqueFd exits;
    UniqueFd kept;
    UniqueFd ring;
    UniqueFd signals;
    UniqueFd marks;
  };
  struct Programs {
    UniqueFd exit;
    UniqueFd backup;
    UniqueFd notice;
    UniqueFd signal;
    UniqueFd taken;
    UniqueFd oom;
  };

  Maps maps;
  Programs programs;
  Programs links;  // to their tracepoints
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_RECORDER_RECORDER_PARTS_H_
