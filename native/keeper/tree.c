// One idea: which processes belong to a run, and how all of them are reached. Of a run with a
// cgroup: those in it. Of one without: all below its shim, to which the kernel gives what they
// leave behind.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"
#include "shim.h"

enum { kHidden = '?' };  // the state of a process that /proc hides

int ReadFile(const char* path, char* text, size_t room) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  size_t size = 0;
  ssize_t count;
  while (size < room - 1 && (count = read(file, text + size, room - 1 - size)) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      close(file);
      return error;
    }
    size += (size_t)count;
  }
  close(file);
  text[size] = '\0';
  return 0;
}

int WriteFile(const char* path, const char* text, int flags) {
  const int file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
  if (file < 0) return errno;
  const ssize_t count = write(file, text, strlen(text));
  const int error = count == (ssize_t)strlen(text) ? 0 : count < 0 ? errno : ENOSPC;
  if (close(file) < 0 && error == 0) return errno;
  return error;
}

int ReadStat(pid_t pid, Stat* stat) {
  char path[40], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int error = ReadFile(path, text, sizeof text);
  if (error != 0) return error == ENOENT ? ESRCH : error;
  const char* const name_end = strrchr(text, ')');
  long long ticks;
  if (name_end == NULL ||
      sscanf(name_end + 1,
             " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %lld",
             &stat->state, &stat->parent, &stat->flags, &stat->threads, &ticks) != 5) {
    return EIO;
  }
  stat->ticks = ticks;
  return 0;
}

int64_t TicksOf(pid_t pid) {
  Stat stat;
  return ReadStat(pid, &stat) == 0 ? stat.ticks : 0;
}

// Whether an attempt to look failed because nothing is there. Who has no descriptor left, for
// example, knows nothing.
static bool SaysGone(int error) { return error == ENOENT || error == ESRCH || error == ENODEV; }

bool IsAlive(pid_t pid, int64_t ticks) {
  Stat stat;
  if (pid == 0) return false;
  const int error = ReadStat(pid, &stat);
  if (error != 0) return !SaysGone(error);
  if (stat.ticks != ticks || stat.state == 'X') return false;
  return stat.state != 'Z' || stat.threads > 1;
}

bool IsThat(pid_t pid, pid_t wanted, int64_t ticks) {
  if (pid != wanted || ticks == kGoneTicks) return false;
  const int64_t now = TicksOf(pid);
  return now == ticks || now == 0 || ticks == 0;
}

// Of a pid that /proc does not show, whether there is such a process, with other rights than ours:
// one that has executed a set-user-ID program, or a stranger (hidepid of proc(5)).
static bool IsHidden(pid_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM); }

Exec ExecOf(pid_t pid, int64_t ticks) {
  enum { kForkNoExec = 0x40 };  // PF_FORKNOEXEC: no program since its fork
  Stat stat;
  const int error = pid == 0 ? ESRCH : ReadStat(pid, &stat);
  if (error == ESRCH && IsHidden(pid)) return kAfterExec;
  if (error != 0 || (ticks != 0 && stat.ticks != ticks)) return kUnseen;
  return (stat.flags & kForkNoExec) != 0 ? kBeforeExec : kAfterExec;
}

static void NoteUnseen(Members* members, int error) {
  if (error != 0 && !SaysGone(error)) members->error = error;
}

static void AddMember(Members* members, pid_t pid) {
  Stat stat;
  const int error = ReadStat(pid, &stat);
  if (error == ESRCH && IsHidden(pid))
    stat = (Stat){.state = kHidden};
  else if (error != 0)
    return NoteUnseen(members, error);
  if (members->count == members->room) {
    members->room = members->room == 0 ? 16 : members->room * 2;
    members->list = Need(realloc(members->list, members->room * sizeof *members->list));
  }
  members->list[members->count++] = (Member){pid, stat.ticks, stat.state};
}

static bool Has(const Members* members, pid_t pid) {
  for (size_t i = 0; i < members->count; i++) {
    if (members->list[i].pid == pid) return true;
  }
  return false;
}

static void AddNewMember(Members* members, pid_t pid) {
  if (!Has(members, pid)) AddMember(members, pid);
}

// Adds each of the numbers in a file, which may be long.
static void AddListed(Members* members, const char* path) {
  FILE* const file = fopen(path, "re");
  if (file == NULL) return NoteUnseen(members, errno);
  int pid;
  while (fscanf(file, "%d", &pid) == 1) AddNewMember(members, pid);
  fclose(file);
}

static void AddChildren(Members* members, pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR* const tasks = opendir(path);
  if (tasks == NULL) return NoteUnseen(members, errno);
  for (const struct dirent* entry; (entry = readdir(tasks)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%.12s/children", pid, entry->d_name);
    AddListed(members, path);
  }
  closedir(tasks);
}

static void AddCgroup(Members* members, const char* cgroup) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
  AddListed(members, path);
  DIR* const folder = opendir(cgroup);
  if (folder == NULL) return NoteUnseen(members, errno);
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    if (snprintf(path, sizeof path, "%s/%s", cgroup, entry->d_name) >= (int)sizeof path) continue;
    AddCgroup(members, path);
  }
  closedir(folder);
}

// The shim, if it is still that process.
static pid_t ShimOf(const Run* run) { return IsAlive(run->shim, run->shim_ticks) ? run->shim : 0; }

// Of a process that /proc hides, whether it is this run's for certain.
static bool IsHiddenMain(const Run* run) {
  Stat stat;
  Death death;
  if (!RunIsAlive(run) || ReadStat(run->pid, &stat) != ESRCH || !IsHidden(run->pid)) return false;
  if (PeekDeath(P_PID, run->pid, WNOHANG, &death)) return false;
  if (errno == 0) return true;  // our child
  if (run->cgroup == NULL) return false;
  Members members = {0};
  AddCgroup(&members, run->cgroup);
  const bool is_listed = Has(&members, run->pid);
  free(members.list);
  return is_listed;
}

bool MainIsAlive(const Run* run) {
  return IsAlive(run->pid, run->start_ticks) || IsHiddenMain(run);
}

static bool IsOfARun(pid_t pid) {
  for (const Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) {
    if (IsThat(pid, run->shim, run->shim_ticks) || IsThat(pid, run->pid, run->start_ticks) ||
        pid == run->log_pid)
      return true;
    if (run->cgroup != NULL && TreeHas(run, pid)) return true;
  }
  return pid == keeper.main_pid;
}

// Of a run whose shim was killed: our children that nobody else has. If they may be another such
// run's, or a container's whose first process we are, only those of its session are certainly its
// own; so it is if the run has left its cgroup.
static void AddStrays(Members* members, const Run* run) {
  bool is_alone = run->cgroup == NULL && keeper.main_pid == 0 && !IsGuard();
  for (const Run* other = RunAfter(0); other != NULL; other = RunAfter(other->serial))
    is_alone &= other == run || !other->has_strays || !other->has_left;
  Members ours = {0};
  AddChildren(&ours, getpid());
  for (size_t i = 0; i < ours.count; i++) {
    const pid_t pid = ours.list[i].pid;
    if (!IsOfARun(pid) && (is_alone || getsid(pid) == run->pid)) AddNewMember(members, pid);
  }
  NoteUnseen(members, ours.error);
  free(ours.list);
}

void TreeMembers(const Run* run, Members* members) {
  if (run->cgroup != NULL) AddCgroup(members, run->cgroup);
  size_t i = members->count;
  const pid_t shim = ShimOf(run);
  if (shim != 0)
    AddChildren(members, shim);
  else if (MainIsAlive(run))
    AddNewMember(members, run->pid);  // its shim was killed, or it has left its cgroup
  if (run->has_strays) AddStrays(members, run);
  // The list grows while it is read.
  for (; i < members->count; i++) AddChildren(members, members->list[i].pid);
}

// `otherwise`: what holds if there is no such cgroup.
static bool CgroupSays(const char* cgroup, const char* wanted, bool otherwise) {
  char path[PATH_MAX], text[256];
  snprintf(path, sizeof path, "%s/cgroup.events", cgroup);
  const int error = ReadFile(path, text, sizeof text);
  if (error == 0) return strstr(text, wanted) != NULL;
  return otherwise && (SaysGone(error) || error == ENOTDIR);
}

bool TreeIsEmpty(const Run* run) {
  if (ShimOf(run) != 0 || MainIsAlive(run)) return false;
  if (run->cgroup != NULL && !CgroupSays(run->cgroup, "populated 0", true)) return false;
  if (!run->has_strays) return true;
  Members members = {0};
  TreeMembers(run, &members);
  free(members.list);
  return members.count == 0 && members.error == 0;
}

bool TreeHas(const Run* run, pid_t pid) {
  char path[40], text[PATH_MAX];
  if (run->cgroup != NULL) {
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    if (ReadFile(path, text, sizeof text) != 0) return false;
    // Where the hierarchy is mounted is not known here: compare the last two folders.
    const char* name = strrchr(run->cgroup, '/');
    while (name > run->cgroup && *--name != '/') continue;
    const char* const line = strstr(text, "0::");
    const char* const at = line == NULL ? NULL : strstr(line, name);
    return at != NULL && strchr("/\n", at[strlen(name)]) != NULL;
  }
  const pid_t shim = ShimOf(run);
  for (int depth = 0; shim != 0 && depth < 64 && pid > 1; depth++) {
    Stat stat;
    if (pid == shim) return true;
    if (ReadStat(pid, &stat) != 0) return false;
    pid = stat.parent;
  }
  return false;
}

// Signals exactly this process; 0 or an errno.
static int SignalProcess(pid_t pid, int64_t ticks, int signal) {
  const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0 && errno == ESRCH) return ESRCH;
  Stat stat;
  int error = ReadStat(pid, &stat);
  if (error == 0 && stat.ticks != ticks) error = ESRCH;
  if (error == 0 && (pidfd >= 0 ? syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0
                                : kill(pid, signal) < 0))  // before Linux 5.3
    error = errno;
  if (pidfd >= 0) close(pidfd);
  return error;
}

// A hidden process has no start that we could compare. But who is still in the tree when a
// descriptor for its pid has been opened is the process of that descriptor, or that one is gone.
static int SignalHidden(const Run* run, pid_t pid, int signal) {
  const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) return errno;
  Members now = {0};
  TreeMembers(run, &now);
  int error = Has(&now, pid) ? 0 : ESRCH;
  if (error == 0 && syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) < 0) error = errno;
  free(now.list);
  close(pidfd);
  return error;
}

static int SignalMember(const Run* run, const Member* member, int signal) {
  return member->state == kHidden ? SignalHidden(run, member->pid, signal)
                                  : SignalProcess(member->pid, member->ticks, signal);
}

int MainSignal(const Run* run, int signal) {
  const int error = SignalProcess(run->pid, run->start_ticks, signal);
  return error == ESRCH && IsHidden(run->pid) ? SignalHidden(run, run->pid, signal) : error;
}

static int SignalMembers(const Run* run, const Members* members, int signal) {
  int error = ESRCH;
  for (size_t i = 0; i < members->count; i++) {
    const Member* const member = &members->list[i];
    if (member->state == 'X') continue;  // behind a zombie there may be living threads
    const int result = SignalMember(run, member, signal);
    if (result != ESRCH && error != 0) error = result;
  }
  return error;
}

int TreeSignal(const Run* run, int signal) {
  Members members = {0};
  TreeMembers(run, &members);
  const int error = SignalMembers(run, &members, signal);
  free(members.list);
  return error == ESRCH && members.error != 0 ? members.error : error;
}

// Stops all of them: what is stopped does not fork. Returns when a look finds nobody new.
static void StopMembers(const Run* run, Members* members) {
  for (int looks = 0; looks < 100; looks++) {
    bool found = false;
    Members now = {0};
    TreeMembers(run, &now);
    for (size_t i = 0; i < now.count; i++) {
      if (Has(members, now.list[i].pid)) continue;
      found = true;
      SignalMember(run, &now.list[i], SIGSTOP);
    }
    free(members->list);
    *members = now;
    if (!found) return;
  }
}

void TreeKill(Run* run) {
  if (run->cgroup != NULL) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cgroup.kill", run->cgroup);
    if (WriteFile(path, "1", 0) != 0) {  // before Linux 5.14
      TreeFreeze(run, true);
      TreeSignal(run, SIGKILL);
      TreeFreeze(run, false);
    }
    if (!MainIsAlive(run) || TreeHas(run, run->pid)) return;
  }
  Members members = {0};
  StopMembers(run, &members);
  SignalMembers(run, &members, SIGKILL);
  free(members.list);
}

int TreeFreeze(const Run* run, bool on) {
  if (run->cgroup != NULL) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cgroup.freeze", run->cgroup);
    const int error = WriteFile(path, on ? "1" : "0", 0);
    if (error != ENOENT || TreeIsEmpty(run)) return error == ENOENT ? ESRCH : error;
  }
  if (!on) return TreeSignal(run, SIGCONT);
  Members members = {0};
  StopMembers(run, &members);
  const int error = members.count > 0 ? 0 : members.error != 0 ? members.error : ESRCH;
  free(members.list);
  return error;
}

bool TreeIsFrozen(const Run* run) {
  if (run->cgroup != NULL && CgroupSays(run->cgroup, "frozen 1", false)) return true;
  Members members = {0};
  TreeMembers(run, &members);
  bool is_frozen = members.count > 0;
  for (size_t i = 0; i < members.count; i++)
    is_frozen &= strchr("TtZX", members.list[i].state) != NULL;
  free(members.list);
  return is_frozen;
}

// Nothing else is made or removed, whatever a request says.
static bool IsInCgroups(const char* path) {
  struct statfs status;
  return statfs(path, &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

// The folder above; false if that is the root.
static bool ParentOf(const char* path, char* parent) {
  const size_t length = strlen(path);
  if (length >= PATH_MAX) return false;
  memcpy(parent, path, length + 1);
  char* const slash = strrchr(parent, '/');
  if (slash == NULL || slash == parent) return false;
  *slash = '\0';
  return true;
}

// Makes the folder of a run; those above it must exist, but the last of them.
int CgroupMake(const char* path) {
  char parent[PATH_MAX], above[PATH_MAX];
  if (!ParentOf(path, parent) || !ParentOf(parent, above) || !IsInCgroups(above)) return EINVAL;
  if (mkdir(parent, 0755) < 0 && errno != EEXIST) return errno;
  if (mkdir(path, 0755) == 0) return 0;
  if (errno != EEXIST) return errno;
  // Of a run that was forgotten while its folder could not be removed, or of somebody else.
  return CgroupSays(path, "populated 0", false) ? 0 : EBUSY;
}

static void RemoveTree(const char* cgroup) {
  if (!IsInCgroups(cgroup) || rmdir(cgroup) == 0) return;
  DIR* const folder = opendir(cgroup);
  if (folder == NULL) return;
  char path[PATH_MAX];
  for (const struct dirent* entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    if (snprintf(path, sizeof path, "%s/%s", cgroup, entry->d_name) < (int)sizeof path)
      RemoveTree(path);
  }
  closedir(folder);
  rmdir(cgroup);
}

void CgroupRemove(const char* cgroup) {
  RemoveTree(cgroup);
  char parent[PATH_MAX];
  if (!ParentOf(cgroup, parent) || !IsInCgroups(parent)) return;
  // Made by us, see CgroupMake(); others' folders stay.
  const char* const name = strrchr(parent, '/');
  if (name != NULL && strncmp(name, "/exitwatch-", 11) == 0) rmdir(parent);
}
