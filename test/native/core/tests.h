#ifndef EXITWATCH_TEST_TESTS_H_
#define EXITWATCH_TEST_TESTS_H_

namespace exitwatch::test {

void ProcEventTests();
void ProcStatTests();
void ThreadGroupAggregatorTests();
void BtfTests();
void BpfAssemblerTests();
void RecordQueueTests();
void SignalQueueTests();
void EndedGroupsTests();
void ExitAttributionTests();
void WatchSetTests();
void CgroupRecordTests();

}  // namespace exitwatch::test

#endif  // EXITWATCH_TEST_TESTS_H_
