#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "core/bpf/btf.h"
#include "core/bpf/kernel_layout.h"
#include "tests.h"

namespace exitwatch {

namespace {

// The description that the kernel would give of
//   struct task { int pid; struct { char name[16]; long flag : 1; }; const struct task *next; };
class BtfBytes {
 public:
  BtfBytes() {
    Type("int", 1, 0, 4), Word(0x01000020);         // 1
    Type("char", 1, 0, 1), Word(8);                 // 2
    Type("", 3, 0, 0), Word(2), Word(1), Word(16);  // 3: char[16]
    Type("", 4, 2, 24, true);                       // 4
    Member("name", 3, 0), Member("flag", 1, 1 << 24 | 128);
    Type("task", 4, 3, 40);  // 5
    Member("pid", 1, 0), Member("", 4, 64), Member("next", 7, 256);
    Type("", 10, 0, 5);                                      // 6: const struct task
    Type("", 2, 0, 6);                                       // 7: pointer to 6
    Type("loop", 8, 0, 8);                                   // 8: a typedef of itself
    Type("", 13, 2, 1), Word(0), Word(1), Word(0), Word(7);  // 9: int (int, const struct task *)
    Type("", 2, 0, 9);                                       // 10: pointer to 9
    Type("callback", 8, 0, 10);                              // 11
    Type("", 3, 0, 0), Word(5), Word(1), Word(0);            // 12: struct task[]
    Type("tasks", 4, 2, 8);                                  // 13
    Member("count", 1, 0), Member("all", 12, 64);
    Type("call", 12, 0, 9);  // 14: a function of type 9
  }

  std::vector<uint8_t> Bytes() const {
    std::vector<uint8_t> bytes = {0x9f, 0xeb, 1, 0};
    const auto put = [&](uint32_t word) {
      const auto* from = reinterpret_cast<const uint8_t*>(&word);
      bytes.insert(bytes.end(), from, from + 4);
    };
    const auto types = static_cast<uint32_t>(words_.size() * 4);
    for (const uint32_t word : {24u, 0u, types, types, static_cast<uint32_t>(names_.size())}) {
      put(word);
    }
    for (const uint32_t word : words_) put(word);
    bytes.insert(bytes.end(), names_.begin(), names_.end());
    return bytes;
  }

 private:
  void Word(uint32_t word) { words_.push_back(word); }
  uint32_t Name(const std::string& name) {
    if (name.empty()) return 0;
    const auto offset = static_cast<uint32_t>(names_.size());
    names_ += name + '\0';
    return offset;
  }
  void Type(const std::string& name, uint32_t kind, uint32_t count, uint32_t size_or_type,
            bool has_bit_fields = false) {
    Word(Name(name)), Word(kind << 24 | count | uint32_t{has_bit_fields} << 31);
    Word(size_or_type);
  }
  void Member(const std::string& name, uint32_t type, uint32_t place) {
    Word(Name(name)), Word(type), Word(place);
  }

  std::vector<uint32_t> words_;
  std::string names_ = std::string(1, '\0');
};

void MembersOfAnonymousStructsAreFound() {
  const std::vector<uint8_t> bytes = BtfBytes().Bytes();
  const std::optional<Btf> btf = Btf::Parse(bytes.data(), bytes.size());
  CHECK(btf);
  CHECK_EQUAL(btf->Find("task", "pid")->offset, 0u);
  CHECK_EQUAL(btf->Find("task", "pid")->size, 4u);
  CHECK_EQUAL(btf->Find("task", "name")->offset, 8u);
  CHECK_EQUAL(btf->Find("task", "name")->size, 16u);
  CHECK_EQUAL(btf->Find("task", "next")->offset, 32u);
  CHECK_EQUAL(btf->Find("task", "next")->size, 8u);
  CHECK_EQUAL(btf->Find("tasks", "all")->offset, 8u);
  CHECK_EQUAL(btf->Find("tasks", "all")->size, 0u);  // an array without a length
  CHECK(!btf->Find("task", "flag"));                 // a bit field
  CHECK(!btf->Find("task", "none"));
  CHECK(!btf->Find("int", "pid"));
  CHECK_EQUAL(*btf->CountParameters("callback"), 2u);
  CHECK(!btf->CountParameters("loop"));
  CHECK(!btf->CountParameters("task"));
  CHECK_EQUAL(*btf->FindFunction("call", 2), 14u);
  CHECK(!btf->FindFunction("call", 1));
  CHECK(!btf->FindFunction("callback", 2));
}

void ReadsAnyBtfSafely() {
  const std::vector<uint8_t> whole = BtfBytes().Bytes();
  std::mt19937 random(1);
  for (int i = 0; i < 50'000; i++) {
    std::vector<uint8_t> bytes = whole;
    for (uint8_t& byte : bytes) {
      if (random() % 40 == 0) byte = static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    bytes.shrink_to_fit();
    const std::optional<Btf> btf = Btf::Parse(bytes.data(), bytes.size());
    if (!btf) continue;
    for (const char* member : {"pid", "name", "next", "flag", ""}) btf->Find("task", member);
    const char* missing = "";
    ResolveKernelLayout(*btf, &missing);
    btf->FindFunction("call", 2);
  }
}

void ALayoutNamesMissingFields() {
  const std::vector<uint8_t> bytes = BtfBytes().Bytes();
  const char* missing = "";
  CHECK(!ResolveKernelLayout(*Btf::Parse(bytes.data(), bytes.size()), &missing));
  CHECK(std::string(missing) == "flags");
}

}  // namespace

void test::BtfTests() {
  MembersOfAnonymousStructsAreFound();
  ReadsAnyBtfSafely();
  ALayoutNamesMissingFields();
}

}  // namespace exitwatch
