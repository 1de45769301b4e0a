#ifndef EXITWATCH_ABI_READER_H_
#define EXITWATCH_ABI_READER_H_

namespace exitwatch {

// Whether a reader uses the connector's stream.
enum class StreamUse : int {
  kRequired = 0,  // fail without the stream
  kPreferred,     // without the stream, report watched processes through their pidfds
  kNone,
};

// The result of a request to watch a process.
enum class WatchResult : int {
  kArmed = 0,
  kWithoutPidfd,  // armed, but only the stream reports it: no descriptor is free, or pidfds no
                  // longer work
  kGone,
  kFailed,
};

// The state of a process, as far as it is visible.
enum class ProcessState : int {
  kGone = 0,  // no such process: it was reaped
  kDead,      // every thread has exited; the parent has not reaped it yet
  kAlive,     // at least one thread is alive
  kUnknown,   // could not be determined, for example because no descriptor was free
};

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_READER_H_
