#ifndef EXITWATCH_CORE_GROUPS_STREAM_KIND_H_
#define EXITWATCH_CORE_GROUPS_STREAM_KIND_H_

namespace exitwatch {

// The source that reports exits of processes besides their handles.
enum class StreamKind {
  kNone,
  kThreads,  // thread events; of threads other than the first, only with a code other than 0
  kGroups,   // the eBPF filter's records, one per process
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_STREAM_KIND_H_
