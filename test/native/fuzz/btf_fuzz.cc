// Feeds the BTF parser arbitrary bytes.
#include "core/bpf/btf.h"
#include "core/bpf/kernel_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<exitwatch::Btf> btf = exitwatch::Btf::Parse(data, size);
  if (!btf) return 0;
  for (const char* member : {"pid", "name", "next", "flag", ""}) btf->Find("task", member);
  const char* missing = "";
  exitwatch::ResolveKernelLayout(*btf, &missing);
  exitwatch::ResolveSignalLayout(*btf, &missing);
  for (const char* name : {"task", "loop", "callback", "call", ""}) {
    btf->CountParameters(name);
    btf->FindFunction(name, 2);
  }
  return 0;
}
