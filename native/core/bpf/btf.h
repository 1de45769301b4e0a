#ifndef EXITWATCH_CORE_BPF_BTF_H_
#define EXITWATCH_CORE_BPF_BTF_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace exitwatch {

// The kernel's description of its own types (BPF Type Format, the kernel's
// Documentation/bpf/btf.rst). Reads only what it needs to find the members of structures.
class Btf {
 public:
  struct Member {
    uint32_t offset;  // in bytes, from the start of the outermost structure
    uint32_t size;    // in bytes; 0 for an array without a length
  };

  // Refers to `data`, which must outlive it. Nothing if the data is not BTF in this machine's byte
  // order. From damaged data, reads what is readable.
  static std::optional<Btf> Parse(const uint8_t* data, size_t size);

  // A member of a structure, including members of nested structures without a name. Nothing if
  // there is none, or if it is a bit field.
  std::optional<Member> Find(std::string_view structure, std::string_view member) const;

  // The number of parameters of the function type that the typedef `name` points to. Nothing if
  // there is none.
  std::optional<uint32_t> CountParameters(std::string_view name) const;

  // The type id of the function with this name and number of parameters.
  std::optional<uint32_t> FindFunction(std::string_view name, uint32_t parameters) const;

 private:
  struct Type {
    uint32_t name;
    uint32_t info;
    uint32_t size_or_type;

    uint32_t kind() const { return (info >> 24) & 0x1f; }
    uint32_t count() const { return info & 0xffff; }
    bool has_bit_fields() const { return (info >> 31) != 0; }
  };

  Btf(const uint8_t* types, size_t types_size, const uint8_t* strings, size_t strings_size)
      : types_(types), types_size_(types_size), strings_(strings), strings_size_(strings_size) {}

  void Index();
  std::optional<Type> TypeAt(uint32_t id) const;
  std::optional<Type> Resolved(uint32_t* id) const;
  std::string_view StringAt(uint32_t offset) const;
  std::optional<Member> FindIn(uint32_t id, std::string_view member, uint64_t base_bits, int depth,
                               int* budget) const;
  bool IsOpenArray(uint32_t id) const;
  uint32_t SizeOf(uint32_t id, int depth) const;

  const uint8_t* types_;
  size_t types_size_;
  const uint8_t* strings_;
  size_t strings_size_;
  std::vector<uint32_t> offsets_;     // of all types, by id; the one of id 0 (void) is unused
  std::vector<uint32_t> structures_;  // ids of structures
};

}  // namespace exitwatch

#endif  // EXITWATCH_CORE_BPF_BTF_H_
