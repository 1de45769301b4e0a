#ifndef EXITWATCH_LINUX_RECORDER_RECORDER_H_
#define EXITWATCH_LINUX_RECORDER_RECORDER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "abi/signal_record.h"
#include "core/bpf/recorder_program.h"
#include "core/bpf/signal_program.h"
#include "linux/bpf/bpf_refusal.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/bpf/kernel_types.h"
#include "linux/bpf/ring_buffer.h"
#include "linux/recorder/recorder_about.h"
#include "linux/recorder/recorder_parts.h"
#include "linux/system/memory_map.h"
#include "linux/system/system_error.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

// Programs in the kernel that record how processes exit, and who sent them signals, whether anybody
// reads that or not. Pinned in a BPF file system, they outlive the process that has loaded them;
// another one opens them and reads on.
//
// Of watched processes the exit is in a table, so that strangers cannot take its place; with a
// ring, the exits of all processes are in that as well. What was read stays until it is forgotten,
// or committed.
class Recorder {
 public:
  explicit Recorder(CgroupPaths& cgroups) : cgroups_(&cgroups) {}

  // Loads the programs and has them run, until this object is gone or longer, if it is pinned.
  // After a refusal the object is to be thrown away.
  BpfRefusal Create(KernelTypes& types, const RecorderAbout& about);

  // Gives all of it names in this folder, which has to exist.
  SystemError Pin(const std::string& folder);

  // Opens what was pinned there. EPROTO: it is of another version of exitwatch, and of it only
  // about() can be used.
  SystemError OpenPinned(const std::string& folder);

  // The same with descriptors that were kept elsewhere: `open` returns that of a part, or none.
  SystemError OpenParts(const std::function<UniqueFd(const std::string& name)>& open);

  // All that it consists of.
  struct Part {
    std::string name;
    int fd;
  };
  std::vector<Part> Parts();

  const RecorderAbout& about() const { return about_; }

  // Whether all of its programs are attached.
  bool IsRecording() const;

  // For who opens it later: it has passed the trial.
  SystemError Trust();

  // Keys by which processes are known to this recorder. 0 is no inode.
  RecorderKey KeyOf(int32_t pid, uint64_t start_ticks, uint64_t inode) const;

  // From now on the exit of the process is kept. False with errno set: E2BIG, the table is full;
  // EEXIST, it is watched already.
  bool Watch(const RecorderKey& key);
  void Forget(const RecorderKey& key);
  std::vector<RecorderKey> Watched() const;

  // Forgets all but these.
  void Retain(const std::vector<RecorderKey>& keys);

  // The exit of a watched process, and since when its signals were recorded. False: it has none.
  bool Find(const RecorderKey& key, RecordedExit* exit, uint64_t* since_ns) const;

  // The signals that may have ended it.
  std::vector<SignalRecord> SignalsOf(const RecorderKey& key) const;

  // Calls `visit(const RecordedExit*, const SignalRecord*, uint64_t end)` with what the ring has of
  // all processes, one of both each time, without taking it out; `end`: what to commit then. False
  // where there may be more.
  template <typename Visit>
  bool ReadRing(size_t limit, Visit visit) {
    const bool is_all = Read(ring_, ring_cgroups_, limit, visit);
    if (!is_all || !MayTellCgroups()) return is_all;
    TellCgroups();
    return false;  // what was written meanwhile
  }

  // The same of other signals.
  template <typename Visit>
  bool ReadSignals(size_t limit, Visit visit) {
    return Read(signals_, signal_cgroups_, limit, visit);
  }

  // Reads them once more from where was committed.
  void ReadSignalsAgain() { signals_.Rewind(); }

  // Call this when nobody reads on here: the next reader needs the paths of all cgroups.
  void EndReading();

  // Bytes of records that are not committed.
  uint64_t RingUsed() const { return about_.ring_bytes == 0 ? 0 : ring_.End() - ring_.Committed(); }
  uint64_t SignalsUsed() const { return signals_.End() - signals_.Committed(); }

  // The position after the latest record of the ring.
  uint64_t RingEnd() const { return about_.ring_bytes == 0 ? 0 : ring_.End(); }

  // Readers may have delivered what the ring has before this position.
  uint64_t Delivered() const { return StateAt(offsetof(RecorderState, delivered)); }
  void SetDelivered(uint64_t position);

  void CommitRing(uint64_t end) { ring_.Commit(end); }
  void CommitSignals(uint64_t end) { signals_.Commit(end); }

  // Until when, on CLOCK_BOOTTIME, the programs record.
  uint64_t lease_ns() const { return StateAt(offsetof(RecorderState, lease_ns)); }
  void SetLease(uint64_t until_ns);

  // Records that did not fit, as the member of RecorderState at this offset has them.
  RecorderLoss Loss(size_t offset) const;

  // Adds the exits for which the kernel may have left out all programs to those that were lost:
  // no fewer, but some may be those of threads, or of processes that nobody watches. `boot_ns`:
  // now. Others may do so at the same time: `exitwatch memory` lists recorders.
  void CountMisses(uint64_t boot_ns);

  // So many of them are no longer to be reported, and the next is the first one.
  void AcknowledgeLoss(size_t offset, uint64_t count);

  struct Program {
    const char* name;
    bpf::ProgramInfo info;
  };
  std::vector<Program> Programs() const;

 private:
  template <typename Visit>
  bool Read(RingBuffer& ring, KnownCgroups& known, size_t limit, Visit visit) {
    known.Follow(*cgroups_);
    return ring.ReadAhead(limit, [&](const uint8_t* data, size_t size, uint64_t end) {
      if (size == sizeof(RecordedExit)) {
        visit(reinterpret_cast<const RecordedExit*>(data), nullptr, end);
      } else if (size == sizeof(SignalRecord)) {
        visit(nullptr, reinterpret_cast<const SignalRecord*>(data), end);
      } else if (size == sizeof(CgroupRecord)) {
        cgroups_->Learn(*reinterpret_cast<const CgroupRecord*>(data));
        has_paths_ = true;
      }
    });
  }

  BpfRefusal CreateMaps();
  BpfRefusal Load(KernelTypes& types);
  BpfRefusal Attach();
  bool HasExpectedMaps() const;

  // Whether it is time for that. Paths take room: not too often, and not while nobody commits.
  bool MayTellCgroups() const;

  // Has the programs write the paths of cgroups into the ring again: the next reader may need those
  // that only this one has read.
  void TellCgroups();
  bool MapAll();
  uint64_t StateAt(size_t offset) const;
  void SetState(size_t offset, uint64_t value);

  RecorderAbout about_ = {};
  RecorderParts parts_;
  CgroupPaths* cgroups_;
  KnownCgroups ring_cgroups_;
  KnownCgroups signal_cgroups_;
  bool has_paths_ = false;  // has read some since TellCgroups()
  std::chrono::steady_clock::time_point told_at_ = {};
  RingBuffer ring_;
  RingBuffer signals_;
  MemoryMap state_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_RECORDER_RECORDER_H_
