// Tests of native/core, which needs no kernel. Prints failures, and exits with 1 if there are any.
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
  ExitAttributionTests();
  WatchSetTests();
  CgroupRecordTests();
  std::printf("%d wrong\n", failures);
  return failures == 0 ? 0 : 1;
}
