#include <cstring>
#include <string>

#include "check.h"
#include "core/parse/proc_stat.h"
#include "tests.h"

namespace exitwatch {

namespace {

std::string StatLine(const std::string& name, const std::string& exit_code = "1792") {
  std::string line = "77 (" + name + ") Z 5 77 77 0 -1 4194560";
  for (int field = 10; field <= 19; field++) line += " " + std::to_string(field);
  line += " 2 0 987654";  // threads, itrealvalue, start
  for (int field = 23; field <= 51; field++) line += " -1";
  return line + " " + exit_code + "\n";
}

void ReadsAStatLine() {
  const std::string line = StatLine("a) b (c");
  ProcStat stat;
  CHECK(ParseProcStat(line.data(), line.size(), &stat));
  CHECK_EQUAL(stat.pid, 77);
  CHECK_EQUAL(std::string(stat.name) == "a) b (c", true);
  CHECK_EQUAL(stat.state, 'Z');
  CHECK_EQUAL(stat.parent_pid, 5);
  CHECK_EQUAL(stat.flags, 4194560u);
  CHECK_EQUAL(stat.threads, 2);
  CHECK_EQUAL(stat.start_ticks, 987654u);
  CHECK_EQUAL(stat.exit_code, 1792);
  CHECK(stat.IsLeaderGone());
}

void RefusesTruncatedStatLines() {
  const std::string line = StatLine("name", "0");
  ProcStat stat;
  for (size_t size = 0; size + 2 < line.size(); size++) {
    CHECK(!ParseProcStat(std::string(line, 0, size).c_str(), size, &stat));
  }
  for (const char* bad : {"", ")", "(", "1 (", "1 ()", "1 ) (", "x (n) S 1", "1 (n)S"}) {
    CHECK(!ParseProcStat(bad, std::strlen(bad), &stat));
  }
}

}  // namespace

void test::ProcStatTests() {
  ReadsAStatLine();
  RefusesTruncatedStatLines();
}

}  // namespace exitwatch
