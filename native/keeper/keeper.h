// One idea: what the parts of the keeper know of each other.
//
// exitwatch-keeper: the parent of processes that outlive their supervisor. It starts what it is
// told to start, reaps it and all that it leaves behind, and writes down each end before it tells.
// It takes no decision, and no decision depends on the wall clock.
#ifndef EXITWATCH_KEEPER_H_
#define EXITWATCH_KEEPER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "text.h"

enum {
  kProtocol = 1,
  kMostRequestBytes = 4 << 20,
  kMostClients = 64,
  kMostIdBytes = 100,
};

// ---- clock.c

int64_t WallMs(void);
// Milliseconds since boot, with the time that the machine slept.
int64_t BootMs(void);
const char* BootId(void);

// ---- runs.c: what was started

typedef enum { kStarting, kRunning, kEnded, kFailed } RunState;

typedef struct {
  char* id;
  char* cgroup;    // its own directory; NULL: it has a shim
  char* text;      // STATUS= of its notify socket
  char* log_fifo;  // what its log process reads, and writes to `log_file`
  char* log_file;
  char* step;  // which step of the start failed
  uint64_t serial;
  int64_t started_ms;  // WallMs()
  int64_t ended_ms;
  int64_t started_boot_ms;  // BootMs()
  int64_t lived_ms;
  int64_t start_ticks;
  int64_t shim_ticks;
  int64_t alive_boot_ms;  // the last WATCHDOG=1 or READY=1
  int64_t log_most;
  int64_t log_next_boot_ms;
  int64_t user_us;
  int64_t system_us;
  int64_t peak_kib;
  int64_t kill_next_boot_ms;
  uint64_t start_client;  // whose request is answered when exec has succeeded
  int64_t start_seq;
  uint64_t hold_client;  // see is_held
  pid_t pid;
  pid_t shim;
  pid_t log_pid;
  int status;  // of waitpid; -1: unknown
  int error;   // errno of a start that failed
  int go_fd;   // see Go()
  int exec_fd;
  int shim_fd;
  int notify_fd;
  int log_fd;  // keeps what is in the FIFO
  int log_keep;
  int kill_wait_ms;
  uint32_t uid;
  uint8_t state;
  bool is_ours;   // we are its parent, or its shim's
  bool has_left;  // processes of it remain
  bool is_ready;
  bool is_stopping;  // it said STOPPING=1
  bool is_killing;
  bool is_stored;   // its end is in the journal
  bool is_end_due;  // its start failed, which is told when its shim is gone, too
  bool has_strays;  // its shim was killed, or it left its cgroup: some of it may be our children
  bool is_paused;
  bool is_held;  // paused until a client says so, leaves, or does not live to see the next keeper
} Run;

bool IsRunId(const char* id);
// The functions of this table know the runs of which something may still come; past.c has the rest.
Run* RunAdd(const char* id);
void RunRemove(Run* run);
Run* RunFind(const char* id);
// The first run whose serial is greater; NULL if there is none.
Run* RunAfter(uint64_t serial);
size_t RunCount(void);
bool RunsAlive(void);
bool RunIsAlive(const Run* run);
// Adds a message's fields that describe it.
void RunDescribe(Buffer* out, const Run* run);

// Everything that waitpid has; never blocks.
void RunsReap(void);
// Reads what a shim reports, or whether exec succeeded.
void RunReadShim(Run* run);
void RunReadExec(Run* run);
// Makes what has ended durable, and tells it.
void RunsTellEnded(void);
// Does what is due; returns how many ms until something is, or -1.
int RunsTick(void);
// What an earlier keeper left.
void RunsTakeStock(void);
// Stops all of it or lets it go on, and remembers which. 0 or an errno.
int RunPause(Run* run, bool is_paused, bool is_held);
// Frees what a run has and no longer needs.
void RunClosed(Run* run);

// ---- past.c: runs of which nothing will come any more. What is filled in here owns nothing: its
// texts are good until the next call.

size_t PastCount(void);
void PastAdd(const Run* run, uint32_t at);
bool PastFind(const char* id, Run* run);
bool PastRemove(const char* id);
// The first whose serial is greater.
bool PastAfter(uint64_t serial, Run* run);
// Where their lines begin in a new journal, in the order of their serials.
void PastMoved(const uint32_t* places);

// ---- journal.c: the file that survives the keeper. Functions return 0 or an errno.

int JournalOpen(void);
int JournalBegin(const Run* run);
int JournalStarted(const Run* run);
// Whether a line of JournalStarted() names us; for a child whose keeper is dead.
bool JournalKnowsUs(const char* id);
int JournalPaused(const Run* run);
int JournalEnded(const Run* run);
// Writes a line that says all, and adds the run to those that are over.
int JournalPast(Run* run);
bool JournalReadPast(uint32_t at, Run* run);
int JournalForgotten(const char* id);
// Makes ends durable that were written since.
int JournalSync(void);
void JournalCompactIfDue(void);
int JournalCompact(void);

// ---- spawn.c

// What RLIMIT_NOFILE was before the keeper raised its own.
extern struct rlimit inherited_files;

// Whether some descriptors are left alone: without any, we would see neither processes nor clients.
void ReserveFiles(bool on);

typedef struct {
  const char* file;
  char** arguments;
  char** environment;
  const char* environment_file;
  const char* directory;
  const char* out;
  const char* err;
  const char* pidfile;
  gid_t* groups;
  size_t group_count;
  int64_t uid;  // -1: as the keeper
  int64_t gid;
  int64_t mask;
  int64_t log_most;
  int64_t log_keep;
  int64_t open_files;  // -1: the usual limit
  bool refuses_root;
  bool has_groups;
} StartSpec;

// Forks. 0 or an errno; what fails in the child comes through run->exec_fd. The child does nothing
// before the journal knows it, which Go() says: a next keeper knows all that was executed.
int SpawnRun(Run* run, const StartSpec* spec);
void Go(Run* run);

// ---- envfile.c

// The environment with the variables of a file, as EnvironmentFile= of systemd.exec(5) has them: a
// later one counts, and those of `environment` before all. NULL: errno says why not.
char** AddEnvironmentFile(const char* path, char** environment);

// ---- folder.c

// The folder of a file; `*name` is the file's in it. What a user could swap meanwhile is not
// followed. -1: errno says why not; ELOOP: a link of a stranger.
int OpenFolderOf(const char* path, const char** name);

// ---- pidfile.c

// Of ourselves. If it cannot be written, whoever asked for it sees that.
void PidfileWrite(const char* path);

// ---- log.c

// Opens the FIFO of a run, so that what is in it is not lost. 0 or an errno.
int LogOpen(Run* run);
// Starts its log process if it has none. `told`: a pipe in which it says whether it can write, or
// -1.
void LogSpawn(Run* run, int told);
// `is_complete`: nobody can write any more, and all is in the file, or there was no room for it.
void LogEnded(Run* run, bool is_complete);
void RotateFile(int folder, const char* name, int keep);

// ---- tree.c

typedef struct {
  pid_t pid;
  int64_t ticks;
  char state;
} Member;

typedef struct {
  Member* list;
  size_t count;
  size_t room;
  int error;  // why some of them may not have been seen, or 0
} Members;

typedef struct {
  int64_t ticks;  // its start
  pid_t parent;
  unsigned flags;
  int threads;
  char state;
} Stat;

// 0 or an errno; ESRCH: there is no such process.
int ReadStat(pid_t pid, Stat* stat);
// Its start; 0: unknown.
int64_t TicksOf(pid_t pid);
// Neither gone, nor a zombie, nor another one with its pid. Whose first thread alone has left is
// alive.
bool IsAlive(pid_t pid, int64_t ticks);
// Whether it is the wanted process, alive or a zombie, as far as can be known.
enum { kGoneTicks = -1 };
bool IsThat(pid_t pid, pid_t wanted, int64_t ticks);
// Whether this process, alive or a zombie, has executed anything since its fork. The answer is of
// one look: between two of them its parent may reap it. `ticks`: 0 for a child of ours.
typedef enum { kUnseen, kBeforeExec, kAfterExec } Exec;
Exec ExecOf(pid_t pid, int64_t ticks);
// All living processes of a run.
void TreeMembers(const Run* run, Members* members);
bool TreeIsEmpty(const Run* run);
bool MainIsAlive(const Run* run);
bool TreeHas(const Run* run, pid_t pid);
// Signals exactly the run's own process; 0 or an errno.
int MainSignal(const Run* run, int signal);
int TreeSignal(const Run* run, int signal);
// One attempt to kill everything.
void TreeKill(Run* run);
int TreeFreeze(const Run* run, bool on);
bool TreeIsFrozen(const Run* run);
int CgroupMake(const char* path);
void CgroupRemove(const char* path);
// 0 or an errno; reads a whole small file, and ends it with a NUL.
int ReadFile(const char* path, char* text, size_t room);
int WriteFile(const char* path, const char* text, int flags);

// ---- notify.c

int NotifyOpen(Run* run, char* address, size_t room);
void NotifyRead(Run* run);

// ---- server.c

void ServerInit(void);
void TellAll(const char* event, const Run* run);
void AnswerStart(const Run* run);
void ServerPoll(int wait_ms);
size_t ServerClients(void);
void TellNotify(const Run* run, const char* text);
// To whoever takes them, a bit each. False: nobody does.
bool TellSignals(uint64_t signals);
// A descriptor to wait for.
typedef enum { kListening, kSignals, kClient, kExecFd, kShimFd, kNotifyFd } Waited;
void WaitFor(int fd, Waited kind, uint64_t id);
void StopWaiting(int fd);

// ---- upgrade.c

// Becomes that binary; returns an errno if it cannot.
int Upgrade(const char* path);
void UpgradeResume(int state);

// ---- guard.c: the supervisor as the command of an init

bool IsGuard(void);
char** GuardCommand(void);
// Starts a command as our child, in keeper.main_pid; -1: it could not.
void StartMain(char** arguments);
void GuardBegin(char** arguments);
// After an upgrade, with what GuardSignals() was.
void GuardResume(char** arguments, uint64_t signals);
void GuardMainEnded(int status);
void GuardSignal(int number);
// A client takes the signals from now on: those that nobody has taken, a bit each.
uint64_t GuardTake(void);
// Those that nobody has taken or has done.
uint64_t GuardSignals(void);
// What to end with, when the command has ended.
void GuardEnd(int status);
// Does what is due; returns how many ms until something is, at most `wait` unless that is negative.
int GuardTick(int wait);
// What to exit with; -1: it is not time.
int GuardStatus(void);

// ---- main.c

extern struct Keeper {
  const char* folder;
  int listening;
  int lock;
  int journal;
  int signals;
  int epoll;
  int main_status;
  pid_t main_pid;       // as init: the command
  int before;           // as init: the folder that it starts in
  mode_t mask;          // as init: its umask
  uint64_t taken_over;  // signals of before an upgrade
  bool is_leaving;      // somebody has asked it to end
} keeper;

void Die(const char* what) __attribute__((noreturn));
void* Need(void* memory);
char* Copy(const char* text);
void CloseFd(int* fd);

#endif  // EXITWATCH_KEEPER_H_
