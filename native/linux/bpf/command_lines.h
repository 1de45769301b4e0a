#ifndef EXITWATCH_LINUX_BPF_COMMAND_LINES_H_
#define EXITWATCH_LINUX_BPF_COMMAND_LINES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

namespace exitwatch {

// Command lines that BPF programs have reported, by numbers that are never reused. The oldest ones
// are forgotten. For any thread.
class CommandLines {
 public:
  struct Text {
    std::string bytes;  // each argument ends with a NUL
    bool is_cut;
  };

  // A process that sent a signal may have run another program before it ended.
  enum class Of { kSender, kExit };

  // Whether this is a CommandLineRecord; then learns from it.
  bool Learn(Of of, const uint8_t* data, size_t size);

  // The latest one of the process with this pid and start, as far as it was read; 0: none.
  uint64_t LatestOf(Of of, int32_t pid, uint64_t start_ns);

  std::optional<Text> Find(uint64_t number);

 private:
  using Key = std::tuple<Of, int32_t, uint64_t>;
  struct Entry {
    Key key;
    Text text;
  };

  void Forget();

  std::mutex mutex_;
  std::deque<Entry> entries_;  // the last ones; guarded by mutex_, like what follows
  uint64_t first_ = 1;         // the number of the first of them
  size_t bytes_ = 0;
  std::map<Key, uint64_t> latest_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_BPF_COMMAND_LINES_H_
