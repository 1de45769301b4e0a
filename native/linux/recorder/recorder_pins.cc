// The parts of a recorder by name: pinned, handed over, and opened again.
#include <cerrno>
#include <utility>

#include "linux/recorder/recorder.h"

namespace exitwatch {

namespace {

// What each is pinned as. The file system permits no dots.
struct Name {
  const char* name;
  UniqueFd* fd;
};

std::vector<Name> MapNames(RecorderParts& parts) {
  RecorderParts::Maps& maps = parts.maps;
  return {{"state", &maps.state},     {"trace_state", &maps.trace_state},
          {"watched", &maps.watched}, {"exits", &maps.exits},
          {"kept", &maps.kept},       {"ring", &maps.ring},
          {"signals", &maps.signals}, {"marks", &maps.marks},
          {"about", &maps.about}};
}

std::vector<Name> ProgramNames(RecorderParts& parts) {
  RecorderParts::Programs& programs = parts.programs;
  return {{"exit_program", &programs.exit},     {"backup_program", &programs.backup},
          {"notice_program", &programs.notice}, {"signal_program", &programs.signal},
          {"taken_program", &programs.taken},   {"oom_program", &programs.oom}};
}

std::vector<Name> LinkNames(RecorderParts& parts) {
  RecorderParts::Programs& links = parts.links;
  return {{"exit_link", &links.exit},     {"backup_link", &links.backup},
          {"notice_link", &links.notice}, {"signal_link", &links.signal},
          {"taken_link", &links.taken},   {"oom_link", &links.oom}};
}

constexpr char kRingCgroups[] = "ring_cgroups";
constexpr char kSignalCgroups[] = "signal_cgroups";

bool Is(const UniqueFd& map, uint32_t type, uint32_t key_bytes, uint32_t value_bytes,
        uint64_t entries) {
  bpf::MapInfo info = {};
  return map && bpf::ReadMapInfo(map.Get(), &info) && info.type == type &&
         info.key_bytes == key_bytes && info.value_bytes == value_bytes && info.entries == entries;
}

constexpr uint32_t kNoEntry = 0;  // the only key of an array with one entry

}  // namespace

std::vector<Recorder::Part> Recorder::Parts() {
  std::vector<Part> parts;
  for (const auto& names : {MapNames(parts_), ProgramNames(parts_), LinkNames(parts_)}) {
    for (const Name& each : names) {
      if (*each.fd) parts.push_back({each.name, each.fd->Get()});
    }
  }
  for (const auto& [name, cgroups] : {std::make_pair(kRingCgroups, &ring_cgroups_),
                                      std::make_pair(kSignalCgroups, &signal_cgroups_)}) {
    if (cgroups->fd() >= 0) parts.push_back({name, cgroups->fd()});
  }
  return parts;
}

SystemError Recorder::Pin(const std::string& folder) {
  for (const Part& part : Parts()) {
    if (!bpf::Pin(part.fd, folder + "/" + part.name)) {
      return {Failure::kSystem, errno, "BPF_OBJ_PIN"};
    }
  }
  return {};
}

SystemError Recorder::OpenPinned(const std::string& folder) {
  return OpenParts([&](const std::string& name) { return bpf::OpenPinned(folder + "/" + name); });
}

SystemError Recorder::OpenParts(const std::function<UniqueFd(const std::string& name)>& find) {
  RecorderParts::Maps& maps = parts_.maps;
  const auto open = [&](const char* name, UniqueFd* fd) {
    *fd = find(name);
    return static_cast<bool>(*fd) || errno == ENOENT;
  };
  if (!open("about", &maps.about)) return {Failure::kSystem, errno, "BPF_OBJ_GET"};
  bpf::MapInfo info = {};
  const bool is_about =
      maps.about && bpf::ReadMapInfo(maps.about.Get(), &info) && info.type == bpf::kArray &&
      info.key_bytes == 4 && info.value_bytes == sizeof(RecorderAbout) &&
      bpf::Lookup(maps.about.Get(), &kNoEntry, &about_) && about_.magic == RecorderAbout::kMagic;
  if (!is_about) {
    about_ = {};
    return {Failure::kSystem, ENOENT, "BPF_OBJ_GET"};
  }
  about_.version[sizeof(about_.version) - 1] = '\0';
  about_.state_dir[sizeof(about_.state_dir) - 1] = '\0';
  if (about_.layout != kRecorderLayout) return {Failure::kSystem, EPROTO, "BPF_OBJ_GET"};
  for (const auto& names : {MapNames(parts_), ProgramNames(parts_), LinkNames(parts_)}) {
    for (const Name& each : names) {
      if (!open(each.name, each.fd)) return {Failure::kSystem, errno, "BPF_OBJ_GET"};
    }
  }
  if (!HasExpectedMaps()) return {Failure::kSystem, EBADMSG, "BPF_OBJ_GET"};
  for (const auto& [name, cgroups] : {std::make_pair(kRingCgroups, &ring_cgroups_),
                                      std::make_pair(kSignalCgroups, &signal_cgroups_)}) {
    UniqueFd map;
    if (!open(name, &map)) return {Failure::kSystem, errno, "BPF_OBJ_GET"};
    if (!map) continue;
    if (!Is(map, bpf::kArray, 4, sizeof(uint64_t), kKnownCgroups) ||
        !cgroups->Adopt(std::move(map))) {
      return {Failure::kSystem, EBADMSG, "BPF_OBJ_GET"};
    }
  }
  if (!MapAll()) return {Failure::kSystem, errno, "mmap"};
  return {};
}

bool Recorder::IsRecording() const {
  const RecorderParts::Programs &programs = parts_.programs, &links = parts_.links;
  // A kernel may lack the tracepoints of the other two.
  return programs.exit && links.exit && programs.backup && links.backup && programs.notice &&
         links.notice && programs.signal && links.signal && (!programs.taken || links.taken) &&
         (!programs.oom || links.oom);
}

// Somebody else may have pinned something else under these names.
bool Recorder::HasExpectedMaps() const {
  const RecorderParts::Maps& maps = parts_.maps;
  const uint32_t slots = about_.slots;
  return Is(maps.state, bpf::kArray, 4, sizeof(RecorderState), 1) &&
         Is(maps.watched, bpf::kHash, sizeof(RecorderKey), sizeof(RecordedProcess), slots) &&
         Is(maps.exits, bpf::kHash, sizeof(RecorderKey), sizeof(RecordedExit), slots) &&
         Is(maps.kept, bpf::kHash, sizeof(RecordedSignalKey), sizeof(SignalRecord),
            KeptSignals(slots)) &&
         Is(maps.marks, bpf::kArray, 4, sizeof(uint64_t), kRecorderMarks) &&
         Is(maps.signals, bpf::kRingbuf, 0, 0, about_.signal_bytes) &&
         (about_.ring_bytes == 0 || Is(maps.ring, bpf::kRingbuf, 0, 0, about_.ring_bytes));
}

}  // namespace exitwatch
