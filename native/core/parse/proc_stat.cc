#include "core/parse/proc_stat.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace exitwatch {

namespace {

// Splits at single spaces and reads decimal numbers. Fails on a field that is not a number.
class Fields {
 public:
  Fields(const char* begin, const char* end) : at_(begin), end_(end) {}

  bool Skip(int count) {
    for (int i = 0; i < count; i++) {
      at_ = std::find(at_, end_, ' ');
      if (at_ == end_) return false;
      at_++;
    }
    return true;
  }

  template <typename T>
  bool Read(T* value) {
    const auto [next, error] = std::from_chars(at_, end_, *value);
    if (error != std::errc() || next == at_) return false;
    if (next != end_ && *next != ' ' && *next != '\n') return false;
    at_ = next;
    return true;
  }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace

bool ParseProcStat(const char* text, size_t size, ProcStat* stat) {
  const char* end = text + size;
  const char* open = std::find(text, end, '(');
  if (open == end) return false;
  // The name may contain ')' and spaces: it ends at the last ')' of the line.
  const char* close = end;
  while (close != open && *(close - 1) != ')') close--;
  if (close == open) return false;
  close--;
  if (close <= open || end - close < 4) return false;

  *stat = ProcStat();
  if (!Fields(text, open).Read(&stat->pid)) return false;
  const size_t name_size = std::min<size_t>(close - open - 1, kNameBytes - 1);
  std::memcpy(stat->name, open + 1, name_size);
  stat->state = close[2];

  // The state is field 3; the arguments of Skip() are the distances between fields.
  Fields fields(close + 2, end);
  return fields.Skip(1) && fields.Read(&stat->parent_pid) &&   // 4
         fields.Skip(5) && fields.Read(&stat->flags) &&        // 9
         fields.Skip(11) && fields.Read(&stat->threads) &&     // 20
         fields.Skip(2) && fields.Read(&stat->start_ticks) &&  // 22
         fields.Skip(30) && fields.Read(&stat->exit_code);     // 52
}

}  // namespace exitwatch
