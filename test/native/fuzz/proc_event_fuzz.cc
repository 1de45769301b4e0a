// Feeds the parsers of proc connector datagrams and of /proc/PID/stat arbitrary bytes.
#include "core/parse/proc_event.h"
#include "core/parse/proc_stat.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  exitwatch::ProcEvent event;
  if (exitwatch::ParseProcEvent(data, size, &event) && event.what == exitwatch::kProcEventExit) {
    if (event.pid <= 0 || event.tgid <= 0 || event.exit_code < 0) __builtin_trap();
  }
  exitwatch::ProcStat stat;
  exitwatch::ParseProcStat(reinterpret_cast<const char*>(data), size, &stat);
  if (stat.name[exitwatch::kNameBytes - 1] != '\0') __builtin_trap();
  return 0;
}
