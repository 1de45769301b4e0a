#include "core/bpf/btf.h"

#include <cstring>

namespace exitwatch {

namespace {

constexpr uint16_t kMagic = 0xeb9f;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kTypeBytes = 12;
constexpr size_t kMemberBytes = 12;

// Structures nest, and types refer to one another: endlessly if the data is damaged.
constexpr int kDeepest = 16;
constexpr int kMostMembers = 100'000;

enum Kind : uint32_t {
  kInt = 1,
  kPointer = 2,
  kArray = 3,
  kStruct = 4,
  kUnion = 5,
  kEnum = 6,
  kForward = 7,
  kTypedef = 8,
  kVolatile = 9,
  kConst = 10,
  kRestrict = 11,
  kFunction = 12,
  kPrototype = 13,
  kVariable = 14,
  kSection = 15,
  kFloat = 16,
  kDeclarationTag = 17,
  kTypeTag = 18,
  kEnum64 = 19,
};

template <typename T>
T Load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// How many bytes follow a type. Nothing for an unknown kind, whose length is unknown too.
std::optional<size_t> TrailerBytes(uint32_t kind, uint32_t count) {
  switch (kind) {
    case kInt:
    case kVariable:
    case kDeclarationTag:
      return 4;
    case kArray:
      return 12;
    case kStruct:
    case kUnion:
    case kSection:
    case kEnum64:
      return size_t{12} * count;
    case kEnum:
    case kPrototype:
      return size_t{8} * count;
    case kPointer:
    case kForward:
    case kTypedef:
    case kVolatile:
    case kConst:
    case kRestrict:
    case kFunction:
    case kFloat:
    case kTypeTag:
      return 0;
    default:
      return std::nullopt;
  }
}

bool IsAnotherName(uint32_t kind) {
  return kind == kTypedef || kind == kVolatile || kind == kConst || kind == kRestrict ||
         kind == kTypeTag;
}

}  // namespace

std::optional<Btf> Btf::Parse(const uint8_t* data, size_t size) {
  if (size < kHeaderBytes || Load<uint16_t>(data) != kMagic) return std::nullopt;
  const uint64_t header_size = Load<uint32_t>(data + 4);
  const uint64_t types_begin = header_size + Load<uint32_t>(data + 8);
  const uint64_t types_size = Load<uint32_t>(data + 12);
  const uint64_t strings_begin = header_size + Load<uint32_t>(data + 16);
  const uint64_t strings_size = Load<uint32_t>(data + 20);
  if (header_size < kHeaderBytes || types_begin + types_size > size ||
      strings_begin + strings_size > size) {
    return std::nullopt;
  }
  Btf btf(data + types_begin, types_size, data + strings_begin, strings_size);
  btf.Index();
  return btf;
}

void Btf::Index() {
  offsets_.push_back(0);
  size_t offset = 0;
  while (types_size_ - offset >= kTypeBytes) {
    const Type type = {0, Load<uint32_t>(types_ + offset + 4), 0};
    const std::optional<size_t> trailer = TrailerBytes(type.kind(), type.count());
    if (!trailer || *trailer > types_size_ - offset - kTypeBytes) return;
    if (type.kind() == kStruct) structures_.push_back(static_cast<uint32_t>(offsets_.size()));
    offsets_.push_back(static_cast<uint32_t>(offset));
    offset += kTypeBytes + *trailer;
  }
}

std::optional<Btf::Type> Btf::TypeAt(uint32_t id) const {
  if (id == 0 || id >= offsets_.size()) return std::nullopt;
  const uint8_t* type = types_ + offsets_[id];
  return Type{Load<uint32_t>(type), Load<uint32_t>(type + 4), Load<uint32_t>(type + 8)};
}

// The type without typedefs and qualifiers.
std::optional<Btf::Type> Btf::Resolved(uint32_t* id) const {
  for (int i = 0; i < kDeepest; i++) {
    const std::optional<Type> type = TypeAt(*id);
    if (!type || !IsAnotherName(type->kind())) return type;
    *id = type->size_or_type;
  }
  return std::nullopt;
}

std::string_view Btf::StringAt(uint32_t offset) const {
  if (offset >= strings_size_) return {};
  const auto* text = reinterpret_cast<const char*>(strings_ + offset);
  return {text, strnlen(text, strings_size_ - offset)};
}

std::optional<Btf::Member> Btf::Find(std::string_view structure, std::string_view member) const {
  for (const uint32_t id : structures_) {
    const std::optional<Type> type = TypeAt(id);
    if (!type || StringAt(type->name) != structure) continue;
    int budget = kMostMembers;
    if (const std::optional<Member> found = FindIn(id, member, 0, kDeepest, &budget)) return found;
  }
  return std::nullopt;
}

std::optional<uint32_t> Btf::CountParameters(std::string_view name) const {
  for (uint32_t id = 1; id < offsets_.size(); id++) {
    const std::optional<Type> type = TypeAt(id);
    if (!type || type->kind() != kTypedef || StringAt(type->name) != name) continue;
    uint32_t target = type->size_or_type;
    const std::optional<Type> pointer = Resolved(&target);
    if (!pointer || pointer->kind() != kPointer) continue;
    target = pointer->size_or_type;
    const std::optional<Type> prototype = Resolved(&target);
    if (prototype && prototype->kind() == kPrototype) return prototype->count();
  }
  return std::nullopt;
}

std::optional<uint32_t> Btf::FindFunction(std::string_view name, uint32_t parameters) const {
  for (uint32_t id = 1; id < offsets_.size(); id++) {
    const std::optional<Type> type = TypeAt(id);
    if (!type || type->kind() != kFunction || StringAt(type->name) != name) continue;
    const std::optional<Type> prototype = TypeAt(type->size_or_type);
    if (!prototype || prototype->kind() != kPrototype) continue;
    if (prototype->count() == parameters) return id;
  }
  return std::nullopt;
}

std::optional<Btf::Member> Btf::FindIn(uint32_t id, std::string_view member, uint64_t base_bits,
                                       int depth, int* budget) const {
  const std::optional<Type> type = Resolved(&id);
  if (!type || (type->kind() != kStruct && type->kind() != kUnion)) return std::nullopt;
  const uint8_t* entry = types_ + offsets_[id] + kTypeBytes;
  for (uint32_t i = 0; i < type->count() && --*budget > 0; i++, entry += kMemberBytes) {
    const std::string_view name = StringAt(Load<uint32_t>(entry));
    const uint32_t member_type = Load<uint32_t>(entry + 4);
    const uint32_t place = Load<uint32_t>(entry + 8);
    const bool is_bit_field = type->has_bit_fields() && (place >> 24) != 0;
    const uint64_t bits = base_bits + (type->has_bit_fields() ? place & 0xffffff : place);
    if (name == member) {
      const uint32_t size = SizeOf(member_type, kDeepest);
      if (is_bit_field || bits % 8 != 0 || bits / 8 > UINT32_MAX) return std::nullopt;
      if (size == 0 && !IsOpenArray(member_type)) return std::nullopt;
      return Member{static_cast<uint32_t>(bits / 8), size};
    }
    if (!name.empty() || depth == 0) continue;
    if (const auto found = FindIn(member_type, member, bits, depth - 1, budget)) return found;
  }
  return std::nullopt;
}

// An array without a length, at the end of its structure.
bool Btf::IsOpenArray(uint32_t id) const {
  const std::optional<Type> type = Resolved(&id);
  if (!type || type->kind() != kArray) return false;
  return Load<uint32_t>(types_ + offsets_[id] + kTypeBytes + 8) == 0;
}

// 0 if unknown.
uint32_t Btf::SizeOf(uint32_t id, int depth) const {
  const std::optional<Type> type = Resolved(&id);
  if (!type || depth == 0) return 0;
  switch (type->kind()) {
    case kInt:
    case kStruct:
    case kUnion:
    case kEnum:
    case kEnum64:
    case kFloat:
      return type->size_or_type;
    case kPointer:
      return sizeof(void*);
    case kArray: {
      const uint8_t* array = types_ + offsets_[id] + kTypeBytes;
      const uint64_t size =
          uint64_t{SizeOf(Load<uint32_t>(array), depth - 1)} * Load<uint32_t>(array + 8);
      return size > UINT32_MAX ? 0 : static_cast<uint32_t>(size);
    }
    default:
      return 0;
  }
}

}  // namespace exitwatch
