#ifndef EXITWATCH_ABI_READER_H_
#define EXITWATCH_ABI_READER_H_

namespace exitwatch {

// Whether a reader takes the connector's stream.
enum class StreamUse : int {
  kRequired = 0,  // without the stream there is nothing
  kPreferred,     // where there is none, pidfds report the ends of watched processes
  kNone,
};

// What has become of a watch that was asked for.
enum class WatchResult : int {
  kArmed = 0,
  kWithoutPidfd,  // armed, but by the stream alone: there is no descriptor to spare, or none to be
                  // had any more
  kGone,
  kFailed,
};

// What can be seen of a process.
enum class ProcessState : int {
  kGone = 0,  // no such process: it was reaped
  kDead,      // every thread has ended; the parent has not reaped it yet
  kAlive,     // at least one thread lives
  kUnknown,   // could not be asked (no descriptor left, for instance)
};

}  // namespace exitwatch

#endif  // EXITWATCH_ABI_READER_H_
