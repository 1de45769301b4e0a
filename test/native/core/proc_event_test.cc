#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "core/parse/proc_event.h"
#include "tests.h"

namespace exitwatch {

namespace {

std::vector<uint8_t> ExitDatagram(int32_t pid, int32_t tgid, int32_t code, int32_t parent) {
  std::vector<uint8_t> bytes(wire::kDatagramBytes);
  const auto put = [&](uint32_t offset, auto value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  };
  put(wire::kNetlinkLength, wire::kDatagramBytes);
  put(wire::kNetlinkType, uint16_t{3});
  put(wire::kConnectorIdx, 1u);
  put(wire::kConnectorVal, 1u);
  put(wire::kConnectorLength, uint16_t{40});
  put(wire::kWhat, kProcEventExit);
  put(wire::kTimestamp, uint64_t{123456789012345});
  put(wire::kExitPid, pid);
  put(wire::kExitTgid, tgid);
  put(wire::kExitCode, code);
  put(wire::kExitParentTgid, parent);
  return bytes;
}

void ReadsACompleteDatagram() {
  const std::vector<uint8_t> bytes = ExitDatagram(12, 10, 0x700, 3);
  ProcEvent event;
  CHECK(ParseProcEvent(bytes.data(), bytes.size(), &event));
  CHECK_EQUAL(event.what, kProcEventExit);
  CHECK_EQUAL(event.timestamp_ns, 123456789012345u);
  CHECK_EQUAL(event.pid, 12);
  CHECK_EQUAL(event.tgid, 10);
  CHECK_EQUAL(event.exit_code, 0x700);
  CHECK_EQUAL(event.parent_tgid, 3);
}

void RefusesTruncatedDatagrams() {
  const std::vector<uint8_t> whole = ExitDatagram(12, 10, 0x700, 3);
  for (size_t size = 0; size < whole.size(); size++) {
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<long>(size));
    ProcEvent event;
    CHECK(!ParseProcEvent(part.data(), part.size(), &event));
  }
}

void RefusesWrongLengths() {
  ProcEvent event;
  for (const uint32_t offset : {wire::kNetlinkLength, wire::kConnectorLength}) {
    for (const uint16_t length : {0, 15, 35, 39, 77, 0xffff}) {
      std::vector<uint8_t> bytes = ExitDatagram(12, 10, 0, 3);
      std::memcpy(bytes.data() + offset, &length, sizeof(length));
      CHECK(!ParseProcEvent(bytes.data(), bytes.size(), &event));
    }
  }
}

void RefusesImpossibleThreadsAndCodes() {
  ProcEvent event;
  for (const auto& bytes :
       {ExitDatagram(0, 10, 0, 3), ExitDatagram(12, 0, 0, 3), ExitDatagram(-1, 10, 0, 3),
        ExitDatagram(12, 10, -1, 3), ExitDatagram(12, 10, 0x10000, 3)}) {
    CHECK(!ParseProcEvent(bytes.data(), bytes.size(), &event));
  }
}

void ReadsAnyBytesSafely() {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; i++) {
    std::vector<uint8_t> bytes = ExitDatagram(12, 10, 0x700, 3);
    bytes.resize(random() % 100);
    for (uint8_t& byte : bytes) {
      if (random() % 8 == 0) byte = static_cast<uint8_t>(random());
    }
    ProcEvent event;
    ParseProcEvent(bytes.data(), bytes.size(), &event);
  }
}

}  // namespace

void test::ProcEventTests() {
  ReadsACompleteDatagram();
  RefusesTruncatedDatagrams();
  RefusesWrongLengths();
  RefusesImpossibleThreadsAndCodes();
  ReadsAnyBytesSafely();
}

}  // namespace exitwatch
