#ifndef EXITWATCH_CORE_GROUPS_STREAM_KIND_H_
#define EXITWATCH_CORE_GROUPS_STREAM_KIND_H_

namespace exitwatch {

// What reports the ends of processes beside their handles.
enum class StreamKind {
  kNone,
  kThreads,  // events of threads; of those that are not the first, only with another code than 0
  kGroups,   // the eBPF filter's records, one for each process
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_STREAM_KIND_H_
