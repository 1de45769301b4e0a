#include "core/groups/exit_attribution.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/groups/group_inspection.h"
#include "core/groups/group_stages.h"

namespace exitwatch {

namespace {

using Certainty = EventOwner::Certainty;

}  // namespace

ExitAttribution::ExitAttribution(bool reports_all, uint64_t most_ns, ProcessWitness& witness,
                                 WatchSet& watches, ThreadGroupAggregator& aggregator,
                                 KnownAt known_at)
    : reports_all_(reports_all),
      most_ns_(most_ns),
      witness_(witness),
      watches_(watches),
      aggregator_(aggregator),
      known_at_(std::move(known_at)) {}

void ExitAttribution::OnExit(const ProcEvent& event) {
  if (!event.IsLeader()) {
    aggregator_.OnExit(event);
  } else if (const std::optional<EventOwner> owner = OwnerOf(event)) {
    Forward(event, *owner);
  } else {
    const uint64_t now_ns = witness_.Now();
    kept_.push_back({event, now_ns + most_ns_});
    retry_ns_ = now_ns + GroupStages::kRetryNs;
  }
}

void ExitAttribution::Retry() {
  if (kept_.empty()) return;
  const uint64_t now_ns = witness_.Now();
  for (const Kept& kept : std::exchange(kept_, {})) {
    std::optional<EventOwner> owner = OwnerOf(kept.event);
    if (!owner && now_ns >= kept.until_ns) owner = GiveUp(kept.event);
    if (owner) {
      Forward(kept.event, *owner);
    } else {
      kept_.push_back(kept);
    }
  }
  retry_ns_ = now_ns + GroupStages::kRetryNs;
}

// Nothing if it cannot be told yet.
std::optional<EventOwner> ExitAttribution::OwnerOf(const ProcEvent& event) {
  if (event.IsOfReleased()) return OwnerOfReleased(event);
  // The process still had its pid when the event was made.
  const std::vector<Watch> watches = watches_.ListOf(event.tgid);
  const auto after = std::find_if(watches.begin(), watches.end(), [&](const Watch& watch) {
    return watch.since_ns > event.timestamp_ns;
  });
  if (after != watches.begin()) {
    EventOwner owner{Certainty::kKnown, std::prev(after)->Identity(), {}};
    if (after != watches.end() && watches.back().was_whole) owner.later = watches.back().Identity();
    return owner;
  }
  const std::optional<GroupIdentity> known = known_at_(event.tgid, event.timestamp_ns);
  return known ? EventOwner{Certainty::kKnown, *known, {}} : EventOwner{};
}

// It is one of those that have been reaped.
std::optional<EventOwner> ExitAttribution::OwnerOfReleased(const ProcEvent& event) {
  const std::optional<std::vector<Watch>> watches = ReapedWatches(event);
  if (!watches || watches->size() > 1) return {};
  if (!watches->empty()) {
    const Watch& only = watches->front();
    return EventOwner{
        only.is_contested ? Certainty::kContested : Certainty::kKnown, only.Identity(), {}};
  }
  if (!MadeBefore(event).empty()) {
    return EventOwner{Certainty::kUnobserved, {}, {}};
  }
  const std::optional<GroupIdentity> known = known_at_(event.tgid, event.timestamp_ns);
  if (!known) return EventOwner{};
  const std::optional<GroupIdentity> holder = HolderOf(witness_, event.tgid);
  if (!holder) return {};
  const bool is_alive = holder->pid != 0 && IsSameGroup(*holder, *known);
  return is_alive ? EventOwner{Certainty::kUnobserved, {}, {}}
                  : EventOwner{Certainty::kKnown, *known, {}};
}

std::vector<Watch> ExitAttribution::MadeBefore(const ProcEvent& event) {
  std::vector<Watch> watches = watches_.ListOf(event.tgid);
  const auto is_later = [&](const Watch& watch) { return watch.since_ns > event.timestamp_ns; };
  watches.erase(std::remove_if(watches.begin(), watches.end(), is_later), watches.end());
  return watches;
}

// The watches whose process has been reaped, and whose own event has not come. Nothing if that
// cannot be told.
std::optional<std::vector<Watch>> ExitAttribution::ReapedWatches(const ProcEvent& event) {
  std::vector<Watch> watches = MadeBefore(event);
  if (watches.empty()) return watches;
  const std::optional<GroupIdentity> holder = HolderOf(witness_, event.tgid);
  if (!holder) return {};
  const auto is_other = [&](const Watch& watch) {
    const GroupIdentity identity = watch.Identity();
    return (holder->pid != 0 && IsSameGroup(*holder, identity)) ||
           aggregator_.HasExitEvent(identity);
  };
  watches.erase(std::remove_if(watches.begin(), watches.end(), is_other), watches.end());
  return watches;
}

void ExitAttribution::Forward(const ProcEvent& event, const EventOwner& owner) {
  if (owner.certainty == Certainty::kUnobserved && !reports_all_) return;
  aggregator_.OnExit(event, owner);
}

// One of several has ended by it. As many events come as processes have ended: each of them
// ends one, and nobody knows how.
std::optional<EventOwner> ExitAttribution::GiveUp(const ProcEvent& event) {
  const std::optional<std::vector<Watch>> watches = ReapedWatches(event);
  if (!watches || watches->empty()) return {};
  for (const Watch& watch : *watches) watches_.Contest(watch.Identity());
  return EventOwner{Certainty::kContested, watches->front().Identity(), {}};
}

}  // namespace exitwatch
