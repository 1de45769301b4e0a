// Who waits for the stream: the reader's thread, or the owner's event loop.
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "linux/exit_reader.h"

namespace exitwatch {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// After the loop was too busy to read the stream, it is not asked to for so long.
constexpr uint64_t kBusyNs = 100 * kMillisecond;

// How often the loop reads on before it has its turn.
constexpr int kReadsInLoop = 8;

// Timestamps are taken before queueing, so that across CPUs the stream is a little out of order:
// 0.3 ms at worst on 6.18.
constexpr uint64_t kDisorderNs = kMillisecond;

}  // namespace

// Until when all exits were read, if what there was at `begin_ns` was read.
uint64_t ExitReader::SettledUntil(bool is_empty, uint64_t begin_ns) const {
  return is_empty ? begin_ns : last_event_ns_ - std::min(last_event_ns_, kDisorderNs);
}

void ExitReader::Listen(Listener listener) {
  // With the group-aware filter an unarmed bell is enough.
  if (listener == Listener::kNobody && stream_.is_group_aware()) listener = Listener::kThread;
  if (!has_stream_ || listener_ == listener) return;
  if (listener_ == Listener::kLoop) {
    reads_in_loop_ = false;
    stream_.SetDeputy(false);
    epoll_ctl(bell_.Get(), EPOLL_CTL_DEL, stream_.fd(), nullptr);
    offer_ns_ = clock_.Now() + kBusyNs;
  }
  epoll_event event = {};
  event.data.u64 = kSocketTag;
  event.events = listener == Listener::kThread ? uint32_t{EPOLLIN} : 0;
  if (epoll_ctl(epoll_.Get(), EPOLL_CTL_MOD, stream_.fd(), &event) != 0) return;
  listener_ = listener;
  if (listener != Listener::kLoop) return;
  event.events = EPOLLIN;
  reads_in_loop_ = epoll_ctl(bell_.Get(), EPOLL_CTL_ADD, stream_.fd(), &event) == 0;
  if (reads_in_loop_)
    stream_.SetDeputy(true);
  else
    Listen(Listener::kThread);
}

void ExitReader::OfferToLoop() {
  const bool may_read =
      is_ready_ && has_stream_ && stream_.is_group_aware() && !watched_.has_guards();
  if (!may_read || reads_in_loop_ || is_offered_ || wait_begin_ns_ < offer_ns_) return;
  is_offered_ = true;
  wake_();
}

// In the owner's thread, which never waits for the reader's.
bool ExitReader::ReadInLoop() {
  is_offered_ = false;
  const std::unique_lock<std::mutex> lock(reading_, std::try_to_lock);
  if (!lock || stopping_ || !stream_.is_group_aware()) return false;
  Listen(Listener::kLoop);
  return reads_in_loop_;
}

// In the owner's thread. False: the reader's has to go on, and does.
bool ExitReader::ReadNow() {
  const std::unique_lock<std::mutex> lock(reading_, std::try_to_lock);
  if (lock && ReadStreamInLoop()) return true;
  reads_in_loop_ = false;
  Signal();
  return false;
}

// What can be read at once. False where there is more to do than that.
bool ExitReader::ReadStreamInLoop() {
  if (!reads_in_loop_) return false;
  wakeups_.fetch_add(1, std::memory_order_relaxed);
  // Of pidfds, and when we last looked at them, this says nothing.
  const uint64_t woken_ns = std::exchange(wake_ns_, clock_.Now());
  bool is_armed = false;
  for (int i = 0; i < kReadsInLoop && !is_armed; i++) {
    clock_.Sample();
    const uint64_t begin_ns = clock_.Now();
    const bool is_empty = Drain();
    aggregator_->Settle(SettledUntil(is_empty, begin_ns));
    NoticeDrops();
    DoubtStaged();
    Flush();
    DrainEvents();
    const uint64_t now_ns = clock_.Now();
    rate_.Add(std::exchange(read_, 0), now_ns);
    if (loss_begin_ns_ != 0 || stream_failure_ || rate_.IsStorm(now_ns)) break;
    if (recheck_ns_ == UINT64_MAX) no_drops_ns_ = begin_ns;
    is_armed = stream_.ArmBell();
  }
  wake_ns_ = woken_ns;
  if (is_armed && Deadline() < sleeps_until_ns_) Signal();
  return is_armed;
}

}  // namespace exitwatch
