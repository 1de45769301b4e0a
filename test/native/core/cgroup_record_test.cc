#include "core/bpf/cgroup_record.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check.h"
#include "tests.h"

namespace exitwatch {

namespace {

std::optional<std::string> PathOfNames(const std::vector<std::string>& own_first) {
  const auto record = std::make_unique<CgroupRecord>();
  std::memset(record.get(), 'x', sizeof(*record));
  record->levels = static_cast<uint32_t>(own_first.size());
  for (size_t i = 0; i < own_first.size() && i < CgroupRecord::kLevels; i++) {
    std::strncpy(record->names[i], own_first[i].c_str(), CgroupRecord::kLevelBytes);
  }
  return PathOf(*record);
}

}  // namespace

void test::CgroupRecordTests() {
  CHECK(PathOfNames({}) == "/");
  CHECK(PathOfNames({"user-0.slice", "user.slice"}) == "/user.slice/user-0.slice");
  // A name that may be truncated, or that could not be read, makes no path.
  CHECK(PathOfNames({std::string(CgroupRecord::kLevelBytes - 2, 'a'), "b"}));
  CHECK(!PathOfNames({std::string(CgroupRecord::kLevelBytes - 1, 'a'), "b"}));
  CHECK(!PathOfNames({std::string(CgroupRecord::kLevelBytes, 'a'), "b"}));
  CHECK(!PathOfNames({"", "b"}));
  CHECK(PathOfNames(std::vector<std::string>(CgroupRecord::kLevels, "a")));
  CHECK(!PathOfNames(std::vector<std::string>(CgroupRecord::kLevels + 1, "a")));
}

}  // namespace exitwatch
