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
// The pids of another boot are those of strangers.
static bool is_this_boot;

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

// The room for the ends of all that runs is taken in advance: a disk that is full later hides none.
static int Reserve(int file) {
  const off_t wanted = (off_t)(RunCount() + 2) * kReserveBytes + kLineBytes;
  if (fallocate(file, FALLOC_FL_KEEP_SIZE, size, wanted) == 0) return 0;
  return errno == ENOSPC || errno == EDQUOT ? errno : 0;
}

static int BeginLine(char* line, const Run* run) {
  return snprintf(line, kLineBytes, "B %s %lld %lld\t%s\n", run->id, (long long)run->started_ms,
                  (long long)run->started_boot_ms, run->cgroup == NULL ? "" : run->cgroup);
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

static int PausedLine(char* line, const Run* run) {
  return snprintf(line, kLineBytes, "Z %s %d %d\n", run->id, run->is_paused, run->is_held);
}

// A run that is over needs nothing else.
static int PastLine(char* line, const Run* run) {
  return snprintf(
      line, kLineBytes, "P %s %d %lld %d %d %lld %d %lld %d %lld %lld %lld %lld %s\t%s\n", run->id,
      run->state, (long long)run->started_ms, run->pid, run->shim, (long long)run->start_ticks,
      run->status, (long long)run->ended_ms, run->error, (long long)run->lived_ms,
      (long long)run->peak_kib, (long long)run->user_us, (long long)run->system_us,
      run->step == NULL ? "-" : run->step, run->cgroup == NULL ? "" : run->cgroup);
}

static int AppendLine(int file, int (*make)(char*, const Run*), const Run* run) {
  char line[kLineBytes];
  const int length = make(line, run);
  if (length >= kLineBytes) return ENAMETOOLONG;
  return Append(file, line, (size_t)length);
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

static void ReadPaused(Run* run, const char* rest) {
  int is_paused, is_held;
  if (sscanf(rest, "%d %d", &is_paused, &is_held) != 2) return;
  run->is_paused = is_paused != 0;
  run->is_held = is_held != 0;
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

// Fills in a run whose texts are in the line.
static bool ReadPast(char* line, Run* run) {
  char* rest = line + 2;
  char* const numbers = line[0] == 'P' && line[1] == ' ' ? NextWord(&rest, '\t') : NULL;
  static char id[kMostIdBytes + 1], step[32];
  int state;
  long long started, ticks, ended, lived, peak, user, system;
  *run = (Run){.is_stored = true};
  run->go_fd = run->exec_fd = run->shim_fd = run->notify_fd = run->log_fd = -1;
  if (numbers == NULL ||
      sscanf(numbers, "%100s %d %lld %d %d %lld %d %lld %d %lld %lld %lld %lld %31s", id, &state,
             &started, &run->pid, &run->shim, &ticks, &run->status, &ended, &run->error, &lived,
             &peak, &user, &system, step) != 14 ||
      (state != kEnded && state != kFailed) || !IsRunId(id)) {
    return false;
  }
  run->id = id;
  run->step = step;
  run->cgroup = *rest == '\0' ? NULL : rest;
  run->state = (uint8_t)state;
  run->started_ms = started;
  run->start_ticks = ticks;
  run->ended_ms = ended;
  run->lived_ms = lived;
  run->peak_kib = peak;
  run->user_us = user;
  run->system_us = system;
  return true;
}

bool JournalReadPast(uint32_t at, Run* run) {
  static char line[kLineBytes];
  const ssize_t length = pread(keeper.journal, line, sizeof line - 1, at);
  if (length <= 0) return false;
  line[length] = '\0';
  char* const end = strchr(line, '\n');
  if (end == NULL) return false;
  *end = '\0';
  return ReadPast(line, run);
}

static void ReadPastLine(char* line, off_t at) {
  Run over;
  if (!ReadPast(line, &over) || at > UINT32_MAX) return;
  Run* run = RunFind(over.id);
  if (run == NULL) run = RunAdd(over.id);
  PastAdd(run, (uint32_t)at);
  RunRemove(run);
}

static void ReadLine(char* line, off_t at) {
  char* rest = line + 2;
  if (strlen(line) < 3 || line[1] != ' ') return;
  if (line[0] == 'K') {
    is_this_boot = strcmp(rest, BootId()) == 0;
    return;
  }
  if (line[0] == 'P') return ReadPastLine(line, at);
  char* id = NextWord(&rest, ' ');
  if (id == NULL) id = rest;
  Run* run = RunFind(id);
  if (run == NULL && line[0] == 'R' && PastRemove(id)) return;
  if (line[0] == 'B') {
    long long started, boot_at;
    if (run != NULL || !IsRunId(id) || sscanf(rest, "%lld %lld", &started, &boot_at) != 2) return;
    run = RunAdd(id);
    run->started_ms = started;
    run->started_boot_ms = boot_at;
    const char* const tab = strchr(rest, '\t');
    if (tab != NULL) run->cgroup = CopyIfAny(tab + 1);
  }
  if (run == NULL) return;
  if (line[0] == 'S') ReadStarted(run, rest);
  if (line[0] == 'Z') ReadPaused(run, rest);
  if (line[0] == 'E') ReadEnded(run, rest);
  if (line[0] == 'F') ReadFailed(run, rest);
  if (line[0] == 'R') RunRemove(run);
  if (line[0] == 'S' && !is_this_boot) run->pid = run->shim = 0;
}

static int WriteHead(int file) {
  char line[64];
  const int length = snprintf(line, sizeof line, "K %s\n", BootId());
  return Append(file, line, (size_t)length);
}

static int WriteRun(int file, const Run* run) {
  int error = AppendLine(file, BeginLine, run);
  // Without this line it was never executed.
  const bool was_started = run->pid != 0 || run->shim != 0 || run->state == kRunning;
  if (error == 0 && was_started) error = AppendLine(file, StartedLine, run);
  if (error == 0 && (run->is_paused || run->is_held)) error = AppendLine(file, PausedLine, run);
  if (error == 0 && !RunIsAlive(run)) error = AppendLine(file, EndedLine, run);
  return error;
}

// All runs in their order; `places` is where the lines of those that are over begin.
static int WriteRuns(int file, uint32_t* places) {
  size_t past = 0;
  Run over;
  bool has_past = PastAfter(0, &over);
  const Run* run = RunAfter(0);
  while (run != NULL || has_past) {
    int error;
    if (has_past && (run == NULL || over.serial < run->serial)) {
      if (size > UINT32_MAX) return EFBIG;
      places[past++] = (uint32_t)size;
      if (!is_this_boot) over.pid = over.shim = 0;
      error = AppendLine(file, PastLine, &over);
      has_past = PastAfter(over.serial, &over);
    } else {
      error = WriteRun(file, run);
      run = RunAfter(run->serial);
    }
    if (error != 0) return error;
  }
  return past == PastCount() ? 0 : EIO;
}

// Writes all that is known into a new file, which then takes the place of the old one.
int JournalCompact(void) {
  const int file =
      open(kNewName, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  const off_t old_size = size;
  const size_t old_lines = lines;
  size = 0;
  lines = 0;
  uint32_t* const places = Need(calloc(PastCount() + 1, sizeof *places));
  int error = WriteHead(file);
  if (error == 0) error = WriteRuns(file, places);
  if (error == 0) error = Reserve(file);
  if (error == 0 && fsync(file) < 0) error = errno;
  if (error == 0 && rename(kNewName, kName) < 0) error = errno;
  if (error == 0) PastMoved(places);
  free(places);
  if (error != 0) {
    close(file);
    unlink(kNewName);
    size = old_size;
    lines = old_lines;
    return error;
  }
  CloseFd(&keeper.journal);
  keeper.journal = file;
  is_this_boot = true;
  const int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return 0;
}

int JournalOpen(void) {
  keeper.journal = open(kName, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (keeper.journal < 0 && errno != ENOENT) return errno;
  off_t at = 0;
  size_t found = 0;
  if (keeper.journal >= 0) {
    FILE* const stream = fdopen(fcntl(keeper.journal, F_DUPFD_CLOEXEC, 0), "r");
    if (stream == NULL) return errno;
    char* line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stream)) > 0) {
      if (line[length - 1] != '\n') break;  // torn by a crash of the machine
      line[length - 1] = '\0';
      if (length < kLineBytes && strlen(line) == (size_t)length - 1) ReadLine(line, at);
      at += length;
      found++;
    }
    free(line);
    fclose(stream);
  }
  const int error = JournalCompact();
  if (error == 0 || keeper.journal < 0 || !is_this_boot) return error;
  // The disk is full: what runs can be stopped, though nothing can be started.
  size = at;
  lines = found;
  return ftruncate(keeper.journal, size) < 0 ? errno : 0;
}

int JournalBegin(const Run* run) {
  const int error = Reserve(keeper.journal);
  return error != 0 ? error : AppendLine(keeper.journal, BeginLine, run);
}

int JournalStarted(const Run* run) { return AppendLine(keeper.journal, StartedLine, run); }

int JournalPaused(const Run* run) { return AppendLine(keeper.journal, PausedLine, run); }

bool JournalKnowsUs(const char* id) {
  FILE* const file = fopen(kName, "re");
  if (file == NULL) return false;
  char* line = NULL;
  size_t room = 0;
  bool is_known = false;
  for (ssize_t length; (length = getline(&line, &room, file)) > 0;) {
    char kind, other[kMostIdBytes + 1];
    int pid = 0, shim = 0;
    const int found = sscanf(line, "%c %100s %d %*d %d", &kind, other, &pid, &shim);
    if (line[length - 1] != '\n' || found < 2 || strcmp(other, id) != 0) continue;
    is_known = kind == 'S' && found == 4 && (pid == getpid() || shim == getpid());
  }
  free(line);
  fclose(file);
  return is_known;
}

int JournalEnded(const Run* run) {
  const int error = AppendLine(keeper.journal, EndedLine, run);
  if (error == 0) is_dirty = true;
  return error;
}

int JournalSync(void) {
  if (!is_dirty) return 0;
  if (fdatasync(keeper.journal) < 0) return errno;
  is_dirty = false;
  return 0;
}

int JournalPast(Run* run) {
  const off_t at = size;
  if (at > UINT32_MAX) return EFBIG;
  int error = Reserve(keeper.journal);
  if (error == 0) error = AppendLine(keeper.journal, PastLine, run);
  if (error == 0 && !run->is_stored) {
    is_dirty = true;
    error = JournalSync();
  }
  if (error != 0) return error;
  PastAdd(run, (uint32_t)at);
  RunRemove(run);
  return 0;
}

int JournalForgotten(const char* id) {
  char line[kMostIdBytes + 8];
  const int length = snprintf(line, sizeof line, "R %s\n", id);
  const int error = Reserve(keeper.journal);
  return error != 0 ? error : Append(keeper.journal, line, (size_t)length);
}

void JournalCompactIfDue(void) {
  if (lines > 8 * RunCount() + 2 * PastCount() + kSlackLines) JournalCompact();
}
