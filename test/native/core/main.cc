// Tests of native/core, which needs no kernel: prints what is wrong, and ends with 1 then.
#include <cstdio>

#include "check.h"
#include "tests.h"

int main() {
  using namespace exitwatch::test;
  ProcEventTests();
  ProcStatTests();
  ThreadGroupAggregatorTests();
  BtfTests();
  BpfAssemblerTests();
  RecordQueueTests();
  SignalQueueTests();
  EndedGroupsTests();
  WatchSetTests();
  CgroupRecordTests();
  std::printf("%d wrong\n", failures);
  return failures == 0 ? 0 : 1;
}
