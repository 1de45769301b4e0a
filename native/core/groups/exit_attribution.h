#ifndef EXITWATCH_CORE_GROUPS_EXIT_ATTRIBUTION_H_
#define EXITWATCH_CORE_GROUPS_EXIT_ATTRIBUTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/groups/event_owner.h"
#include "core/groups/process_witness.h"
#include "core/groups/thread_group_aggregator.h"
#include "core/groups/watch_set.h"
#include "core/parse/proc_event.h"

namespace exitwatch {

// Finds out to which of the processes that had its pid the exit event of a first thread belongs,
// before the aggregator gets it. An event that does not tell is kept until the others' have come.
class ExitAttribution {
 public:
  // The process that had this pid at this time, if it is known without a watch.
  using KnownAt = std::function<std::optional<GroupIdentity>(int32_t pid, uint64_t time_ns)>;

  // `reports_all`: exits of unwatched processes are reported too. `most_ns`: how long an event is
  // kept.
  ExitAttribution(bool reports_all, uint64_t most_ns, ProcessWitness& witness, WatchSet& watches,
                  ThreadGroupAggregator& aggregator, KnownAt known_at);

  void OnExit(const ProcEvent& event);

  // Looks at the kept events again.
  void Retry();

  // When Retry() is due; UINT64_MAX: never.
  uint64_t NextDeadline() const { return kept_.empty() ? UINT64_MAX : retry_ns_; }
  bool HasKept() const { return !kept_.empty(); }
  void Close() { kept_.clear(); }

 private:
  struct Kept {
    ProcEvent event;
    uint64_t until_ns;
  };

  std::optional<EventOwner> OwnerOf(const ProcEvent& event);
  std::optional<EventOwner> OwnerOfReleased(const ProcEvent& event);
  std::optional<std::vector<Watch>> ReapedWatches(const ProcEvent& event);
  std::vector<Watch> MadeBefore(const ProcEvent& event);
  std::optional<EventOwner> GiveUp(const ProcEvent& event);
  void Forward(const ProcEvent& event, const EventOwner& owner);

  const bool reports_all_;
  const uint64_t most_ns_;
  ProcessWitness& witness_;
  WatchSet& watches_;
  ThreadGroupAggregator& aggregator_;
  const KnownAt known_at_;
  std::vector<Kept> kept_;
  uint64_t retry_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_GROUPS_EXIT_ATTRIBUTION_H_
