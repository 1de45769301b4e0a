// One idea: a text file with a line for each thing that happened to a run, so that the next keeper
// knows what this one was the parent of. Only an end is synced before it is told: what a crash of
// the machine can take besides ends are notes of processes that are gone with it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper.h"

enum { kLineBytes = 9000, kReserveBytes = 512, kSlackLines = 4096 };

static const char kName[] = "runs";
static const char kNewName[] = "runs.new";

static off_t size;
static size_t lines;
static bool is_dirty;

static int Append(int file, const char* line, size_t length) {
  for (size_t written = 0; written < length;) {
    const ssize_t count = write(file, line + written, length - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = count == 0 ? ENOSPC : errno;
      // Half a line must not be joined by the next one.
      if (ftruncate(file, size) < 0) return error;
      return error;
    }
    written += (size_t)count;
  }
  size += (off_t)length;
  lines++;
  return 0;
}

static int BeginLine(char* line, const Run* run) {
  return snprintf(line, kLineBytes, "B %s %lld %lld\n", run->id, (long long)run->started_ms,
                  (long long)run->started_boot_ms);
}

// Tabs separate what may hold spaces.
static int StartedLine(char* line, const Run* run) {
  const char* const cgroup = run->cgroup == NULL ? "" : run->cgroup;
  const char* const fifo = run->log_fifo == NULL ? "" : run->log_fifo;
  const char* const file = run->log_file == NULL ? "" : run->log_file;
  return snprintf(line, kLineBytes, "S %s %d %lld %d %lld %u %lld %d\t%s\t%s\t%s\n", run->id,
                  run->pid, (long long)run->start_ticks, run->shim, (long long)run->shim_ticks,
                  run->uid, (long long)run->log_most, run->log_keep, cgroup, fifo, file);
}

static int EndedLine(char* line, const Run* run) {
  if (run->state == kFailed) {
    return snprintf(line, kLineBytes, "F %s %d %s %lld\n", run->id, run->error, run->step,
                    (long long)run->ended_ms);
  }
  return snprintf(line, kLineBytes, "E %s %d %lld %lld %lld %lld %lld\n", run->id, run->status,
                  (long long)run->ended_ms, (long long)run->lived_ms, (long long)run->peak_kib,
                  (long long)run->user_us, (long long)run->system_us);
}

static int AppendLine(int (*make)(char*, const Run*), const Run* run) {
  char line[kLineBytes];
  const int length = make(line, run);
  if (length >= kLineBytes) return ENAMETOOLONG;
  return Append(keeper.journal, line, (size_t)length);
}

static char* NextWord(char** text, char end) {
  char* const word = *text;
  char* const stop = strchr(word, end);
  if (stop == NULL) return NULL;
  *stop = '\0';
  *text = stop + 1;
  return word;
}

static char* CopyIfAny(const char* text) {
  return text == NULL || *text == '\0' ? NULL : Copy(text);
}

static void ReadStarted(Run* run, char* rest) {
  int pid, shim, keep;
  unsigned uid;
  long long ticks, shim_ticks, most;
  char* const numbers = NextWord(&rest, '\t');
  if (numbers == NULL || sscanf(numbers, "%d %lld %d %lld %u %lld %d", &pid, &ticks, &shim,
                                &shim_ticks, &uid, &most, &keep) != 7) {
    return;
  }
  run->state = kRunning;
  run->pid = pid;
  run->start_ticks = ticks;
  run->shim = shim;
  run->shim_ticks = shim_ticks;
  run->uid = uid;
  run->log_most = most;
  run->log_keep = keep;
  free(run->cgroup);
  free(run->log_fifo);
  free(run->log_file);
  run->cgroup = CopyIfAny(NextWord(&rest, '\t'));
  run->log_fifo = CopyIfAny(NextWord(&rest, '\t'));
  run->log_file = CopyIfAny(rest);
  run->has_left = true;
}

static void ReadEnded(Run* run, const char* rest) {
  int status;
  long long at, lived, peak, user, system;
  if (sscanf(rest, "%d %lld %lld %lld %lld %lld", &status, &at, &lived, &peak, &user, &system) != 6)
    return;
  run->state = kEnded;
  run->status = status;
  run->ended_ms = at;
  run->lived_ms = lived;
  run->peak_kib = peak;
  run->user_us = user;
  run->system_us = system;
  run->is_stored = true;
}

static void ReadFailed(Run* run, const char* rest) {
  char step[32];
  long long at;
  if (sscanf(rest, "%d %31s %lld", &run->error, step, &at) != 3) return;
  free(run->step);
  run->step = Copy(step);
  run->state = kFailed;
  run->ended_ms = at;
  run->is_stored = true;
  run->has_left = false;
}

static void ReadLine(char* line, bool* is_this_boot) {
  char* rest = line + 2;
  if (strlen(line) < 3 || line[1] != ' ') return;
  if (line[0] == 'K') {
    *is_this_boot = strcmp(rest, BootId()) == 0;
    return;
  }
  char* id = NextWord(&rest, ' ');
  if (id == NULL) id = rest;
  Run* run = RunFind(id);
  if (line[0] == 'B') {
    long long at, boot_at;
    if (run != NULL || !IsRunId(id) || sscanf(rest, "%lld %lld", &at, &boot_at) != 2) return;
    run = RunAdd(id);
    run->started_ms = at;
    run->started_boot_ms = boot_at;
  }
  if (run == NULL) return;
  if (line[0] == 'S') ReadStarted(run, rest);
  if (line[0] == 'E') ReadEnded(run, rest);
  if (line[0] == 'F') ReadFailed(run, rest);
  if (line[0] == 'R') RunRemove(run);
  // The pids of another boot are those of strangers.
  if (line[0] == 'S' && !*is_this_boot) run->pid = run->shim = 0;
}

static int WriteHead(int file) {
  char line[64];
  const int length = snprintf(line, sizeof line, "K %s\n", BootId());
  return Append(file, line, (size_t)length);
}

// Writes all that is known into a new file, which then takes the place of the old one.
int JournalCompact(void) {
  const int file =
      open(kNewName, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  const int old = keeper.journal;
  const off_t old_size = size;
  const size_t old_lines = lines;
  keeper.journal = file;
  size = 0;
  lines = 0;
  int error = WriteHead(file);
  for (const Run* run = RunAfter(0); run != NULL && error == 0; run = RunAfter(run->serial)) {
    error = AppendLine(BeginLine, run);
    if (error == 0 && (run->pid != 0 || run->shim != 0)) error = AppendLine(StartedLine, run);
    if (error == 0 && (run->state == kEnded || run->state == kFailed))
      error = AppendLine(EndedLine, run);
  }
  if (error == 0 && fsync(file) < 0) error = errno;
  if (error == 0 && rename(kNewName, kName) < 0) error = errno;
  if (error != 0) {
    close(file);
    unlink(kNewName);
    keeper.journal = old;
    size = old_size;
    lines = old_lines;
    return error;
  }
  if (old >= 0) close(old);
  const int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return 0;
}

int JournalOpen(void) {
  const int file = open(kName, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0 && errno != ENOENT) return errno;
  if (file >= 0) {
    FILE* const stream = fdopen(file, "r");
    char* line = NULL;
    size_t room = 0;
    bool is_this_boot = false;
    ssize_t length;
    while ((length = getline(&line, &room, stream)) > 0) {
      if (line[length - 1] != '\n') break;  // torn by a crash of the machine
      line[length - 1] = '\0';
      ReadLine(line, &is_this_boot);
    }
    free(line);
    fclose(stream);
  }
  keeper.journal = -1;
  return JournalCompact();
}

// The room for the ends of all that runs is taken in advance: a disk that is full later hides none.
static int Reserve(void) {
  const off_t wanted = (off_t)(RunCount() + 2) * kReserveBytes;
  if (fallocate(keeper.journal, FALLOC_FL_KEEP_SIZE, size, wanted) == 0) return 0;
  return errno == ENOSPC || errno == EDQUOT ? errno : 0;
}

int JournalBegin(const Run* run) {
  const int error = Reserve();
  return error != 0 ? error : AppendLine(BeginLine, run);
}

void JournalStarted(const Run* run) { AppendLine(StartedLine, run); }

int JournalEnded(const Run* run) {
  const int error = AppendLine(EndedLine, run);
  if (error == 0) is_dirty = true;
  return error;
}

int JournalSync(void) {
  if (!is_dirty) return 0;
  if (fdatasync(keeper.journal) < 0) return errno;
  is_dirty = false;
  return 0;
}

void JournalForgotten(const char* id) {
  char line[kMostIdBytes + 8];
  const int length = snprintf(line, sizeof line, "R %s\n", id);
  Append(keeper.journal, line, (size_t)length);
}

void JournalCompactIfDue(void) {
  if (lines > 8 * RunCount() + kSlackLines) JournalCompact();
}
