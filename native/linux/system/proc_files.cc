#include "linux/system/proc_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "linux/system/file_status.h"
#include "linux/system/unique_fd.h"

namespace exitwatch {

namespace {

using Path = char[64];

void Format(Path& path, int32_t pid, const char* file) {
  std::snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
}

bool ReadStatFile(const char* path, ProcStat* stat) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  // A line has at most 52 numbers of 20 digits and a name. It is read in one piece.
  char text[1536];
  const ssize_t size = RetryOnEintr([&] { return read(file.Get(), text, sizeof(text)); });
  if (size < 0) return false;
  if (ParseProcStat(text, static_cast<size_t>(size), stat)) return true;
  errno = EBADMSG;
  return false;
}

// Calls `visit` for every number among the names in a directory, until it returns false.
bool ForEachNumber(const char* path, const std::function<bool(int32_t)>& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path), closedir);
  if (!directory) return false;
  while (const dirent* entry = readdir(directory.get())) {
    const char* end = entry->d_name + std::strlen(entry->d_name);
    int32_t number = 0;
    const auto [rest, error] = std::from_chars(entry->d_name, end, number);
    if (error != std::errc() || rest != end) continue;
    if (!visit(number)) return true;
  }
  return true;
}

}  // namespace

bool ReadProcStat(int32_t pid, ProcStat* stat) {
  Path path;
  Format(path, pid, "stat");
  return ReadStatFile(path, stat);
}

std::optional<uint32_t> ReadProcUid(int32_t pid) {
  Path path;
  Format(path, pid, "");
  const auto directory = ReadFileStatus(path);
  if (!directory) return {};
  return directory->stx_uid;
}

std::optional<int32_t> ReadProcGroup(int32_t task) {
  Path path;
  Format(path, task, "status");
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  // The key is among the first lines. The name before it is escaped, and thus has no line feed.
  char text[512];
  const ssize_t size = RetryOnEintr([&] { return read(file.Get(), text, sizeof(text) - 1); });
  if (size <= 0) return {};
  text[size] = 0;
  constexpr char kKey[] = "\nTgid:\t";
  const char* found = std::strstr(text, kKey);
  if (found == nullptr) return {};
  int32_t group = 0;
  const auto [rest, error] = std::from_chars(found + sizeof(kKey) - 1, text + size, group);
  return error == std::errc() ? std::optional(group) : std::nullopt;
}

bool MayReadProcExitCode(int32_t pid) {
  Path path;
  Format(path, pid, "cwd");
  char target[1];
  // A zombie has no working directory: ENOENT, after the permission check that answers EACCES.
  return readlink(path, target, sizeof(target)) >= 0 || errno == ENOENT;
}

bool HasDeadThread(int32_t pid, const ProcStat& stat) {
  if (stat.threads < 2) return false;
  Path path;
  Format(path, pid, "task");
  bool has_dead = false;
  ForEachNumber(path, [&](int32_t thread) {
    ProcStat of_thread;
    Path file;
    std::snprintf(file, sizeof(file), "/proc/%d/task/%d/stat", pid, thread);
    has_dead = thread != pid && ReadStatFile(file, &of_thread) && of_thread.IsZombie();
    return !has_dead;
  });
  return has_dead;
}

int32_t ReadPidMax() {
  constexpr int32_t kPidMaxLimit = 4'194'304;  // PID_MAX_LIMIT of the kernel's <linux/threads.h>
  const UniqueFd file(open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC));
  char text[16];
  const ssize_t size = RetryOnEintr([&] { return read(file.Get(), text, sizeof(text)); });
  int32_t pid_max = 0;
  if (size > 0) std::from_chars(text, text + size, pid_max);
  return pid_max > 0 && pid_max <= kPidMaxLimit ? pid_max : kPidMaxLimit;
}

bool ForEachProcess(const std::function<bool(int32_t pid)>& visit) {
  return ForEachNumber("/proc", visit);
}

bool ProcShowsOurPids() {
  char text[16];
  const ssize_t size = readlink("/proc/self", text, sizeof(text));
  if (size <= 0) return false;
  int32_t pid = 0;
  const auto [rest, error] = std::from_chars(text, text + size, pid);
  return error == std::errc() && rest == text + size && pid == getpid();
}

}  // namespace exitwatch
