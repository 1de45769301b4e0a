#include "linux/bpf/command_lines.h"

#include <algorithm>
#include <cstring>

#include "core/bpf/command_line_record.h"

namespace exitwatch {

namespace {

// More than the events that may wait for JavaScript at once, unless it is very late.
constexpr size_t kMostEntries = 16 * 1024;
constexpr size_t kMostBytes = 16 * 1024 * 1024;

}  // namespace

bool CommandLines::Learn(Of of, const uint8_t* data, size_t size) {
  CommandLineRecord record;
  if (size < sizeof(record)) return false;
  std::memcpy(&record, data, sizeof(record));
  if (record.mark != CommandLineRecord::kMark) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const Key key = {of, record.pid, record.start_ns};
  if (record.failed != 0) {
    latest_.erase(key);  // an earlier one may be another program's
    return true;
  }
  const size_t room = size - sizeof(record);
  const size_t length = static_cast<size_t>(std::min<uint64_t>(record.length, room));
  const char* const text = reinterpret_cast<const char*>(data) + sizeof(record);
  entries_.push_back({key, {std::string(text, length), record.length > room}});
  bytes_ += length;
  latest_[key] = first_ + entries_.size() - 1;
  while (entries_.size() > kMostEntries || bytes_ > kMostBytes) Forget();
  return true;
}

void CommandLines::Forget() {
  const Entry& entry = entries_.front();
  const auto latest = latest_.find(entry.key);
  if (latest != latest_.end() && latest->second == first_) latest_.erase(latest);
  bytes_ -= entry.text.bytes.size();
  entries_.pop_front();
  first_++;
}

uint64_t CommandLines::LatestOf(Of of, int32_t pid, uint64_t start_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto latest = latest_.find({of, pid, start_ns});
  return latest == latest_.end() ? 0 : latest->second;
}

std::optional<CommandLines::Text> CommandLines::Find(uint64_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (number < first_ || number - first_ >= entries_.size()) return std::nullopt;
  return entries_[number - first_].text;
}

}  // namespace exitwatch
