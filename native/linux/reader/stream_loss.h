#ifndef EXITWATCH_LINUX_READER_STREAM_LOSS_H_
#define EXITWATCH_LINUX_READER_STREAM_LOSS_H_

#include <cstdint>
#include <limits>
#include <utility>

namespace exitwatch {

// What the stream has dropped, from its detection until a gap reports it.
class StreamLoss {
 public:
  // Nothing was lost before this time.
  void Begin(uint64_t now_ns) { complete_ns_ = now_ns; }

  // Compares the kernel's count of dropped messages with what was reported. True if more were
  // dropped.
  bool Notice(uint64_t drops, uint64_t now_ns) {
    if (drops == reported_) return false;
    if (begin_ns_ == 0) {
      begin_ns_ = complete_ns_;
      noticed_ns_ = now_ns;
    }
    return true;
  }

  // Whether a gap must be reported, and since when.
  bool is_noticed() const { return begin_ns_ != 0; }
  uint64_t begin_ns() const { return begin_ns_; }

  // A gap is reported when the stream has been read empty, or at this time at the latest.
  uint64_t Deadline() const {
    return is_noticed() ? noticed_ns_ + kLongestUnreportedNs : std::numeric_limits<uint64_t>::max();
  }
  bool IsDue(bool is_settled, uint64_t now_ns) const {
    return is_noticed() && (is_settled || now_ns > Deadline());
  }

  // The gap is being reported. Returns how many were dropped.
  uint64_t Take(uint64_t drops) {
    begin_ns_ = 0;
    return drops - std::exchange(reported_, drops);
  }

  // Another gap covers everything dropped so far.
  void Disregard(uint64_t drops) { reported_ = drops; }

  // Nothing was dropped unreported until this time.
  void SetComplete(uint64_t until_ns) { complete_ns_ = until_ns; }
  uint64_t complete_ns() const { return complete_ns_; }

 private:
  static constexpr uint64_t kLongestUnreportedNs = 1'000'000'000;

  uint64_t reported_ = 0;
  uint64_t complete_ns_ = 0;
  uint64_t begin_ns_ = 0;  // 0: no gap to report
  uint64_t noticed_ns_ = 0;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_READER_STREAM_LOSS_H_
