#include "core/groups/ended_groups.h"
#include "check.h"
#include "tests.h"

namespace exitwatch {

namespace {

void AnEndIsRememberedByItsIdentity() {
  EndedGroups ended(2);
  ended.Add({10, 100, 7, 0x1000});
  CHECK(ended.Contains({10, 100, 0, 0x1000}));
  CHECK(ended.Contains({10, 0, 7, 0}));
  CHECK(!ended.Contains({10, 100, 8, 0}));
  CHECK(!ended.Contains({10, 100, 0, 0x2000}));
  CHECK(!ended.Contains({11, 100, 7, 0x1000}));
  ended.Add({11, 100});
  ended.Add({12, 100});
  CHECK(!ended.Contains({10, 100, 7, 0x1000}));
  CHECK(ended.Contains({12, 100}));
}

}  // namespace

void test::EndedGroupsTests() { AnEndIsRememberedByItsIdentity(); }

}  // namespace exitwatch
