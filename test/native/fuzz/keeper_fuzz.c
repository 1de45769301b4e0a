// The keeper's socket and its journal, fed with anything. No process is created or signalled: what
// does that is replaced below.
#define main KeeperMain
#include "../../../native/keeper/main.c"
#undef main

static char folder[] = "/dev/shm/ew-fuzz-XXXXXX";

struct rlimit inherited_files;

bool PeekDeath(int which, pid_t pid, int more, Death* death) {
  (void)which, (void)pid, (void)more, (void)death;
  errno = ECHILD;
  return false;
}
void Reap(pid_t pid) {
  (void)pid;
  abort();  // nobody has died
}
void CloseFrom(int first) { (void)first; }
int ShimTake(const char* id, ShimReport* report) {
  (void)report;
  return id[0] == 'l' ? ENOENT : ESRCH;
}

void ShimForget(const char* id) {
  if (!IsRunId(id)) abort();
}

// What becomes of it is in the name of the command: it fails, ends, or goes on.
int SpawnRun(Run* run, const StartSpec* spec) {
  if (spec->file[0] == 'n') {
    run->step = Copy("fork");
    return EAGAIN;
  }
  int report[2], started[2];
  if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0) return errno;
  if (pipe2(started, O_CLOEXEC | O_NONBLOCK) < 0) abort();
  run->is_ours = true;
  run->has_left = true;
  run->shim = run->pid = 1 << 30;  // there is no such process
  run->shim_fd = report[0];
  run->exec_fd = started[0];
  ShimReport begin = {.pid = run->pid, .ticks = 1};
  if (write(report[1], &begin, sizeof begin) < 0) abort();
  if (spec->file[0] == 'f') {
    const StartFailure failure = {ENOENT, "exec"};
    if (write(started[1], &failure, sizeof failure) < 0) abort();
  }
  if (spec->file[0] == 'e') {
    begin.kind = kEndedAfterExec;
    begin.status = 0x700;
    if (write(report[1], &begin, sizeof begin) < 0) abort();
  }
  close(report[1]);
  close(started[1]);
  return 0;
}
void Go(Run* run) { CloseFd(&run->go_fd); }
int ReadFile(const char* path, char* text, size_t room) {
  (void)path, (void)text, (void)room;
  return ENOENT;
}
int LogOpen(Run* run) { return run->log_fifo[0] == 'n' ? ENOENT : 0; }
void LogSpawn(Run* run, int told) {
  (void)told;
  run->log_next_boot_ms = INT64_MAX;
}
void LogEnded(Run* run, bool is_complete) {
  (void)is_complete;
  run->log_pid = 0;
}
int ReadStat(pid_t pid, Stat* stat) {
  *stat = (Stat){.ticks = pid, .parent = 1, .state = 'S'};
  return pid > 0 && pid < 1000 ? 0 : ESRCH;
}
int64_t TicksOf(pid_t pid) { return pid == 1 << 30 ? 1 : 0; }
bool IsAlive(pid_t pid, int64_t ticks) { return pid == ticks; }
bool IsThat(pid_t pid, pid_t wanted, int64_t ticks) { return pid == wanted && ticks != kGoneTicks; }
Exec ExecOf(pid_t pid, int64_t ticks) { return (Exec)((uint64_t)(pid ^ ticks) % (kAfterExec + 1)); }
void ReserveFiles(bool on) { (void)on; }
void TreeMembers(const Run* run, Members* members) {
  if (!RunIsAlive(run)) return;
  members->list = Need(calloc(1, sizeof *members->list));
  members->list[members->count++] = (Member){run->pid, run->start_ticks, 'S'};
}
bool MainIsAlive(const Run* run) { return RunIsAlive(run); }
bool TreeIsEmpty(const Run* run) { return !RunIsAlive(run); }
bool TreeHas(const Run* run, pid_t pid) { return pid == run->pid; }
int TreeSignal(const Run* run, int signal) {
  (void)run;
  return signal < 0 || signal > 64 ? (abort(), 0) : ESRCH;
}
int MainSignal(const Run* run, int signal) {
  return run->pid <= 0 ? (abort(), 0) : TreeSignal(run, signal);
}
void TreeKill(Run* run) { run->has_left &= RunIsAlive(run); }
int TreeFreeze(const Run* run, bool on) {
  (void)on;
  return RunIsAlive(run) ? 0 : ESRCH;
}
bool TreeIsFrozen(const Run* run) { return run->hold_client != 0; }
void CgroupRemove(const char* path) {
  if (path[0] == '\0') abort();
}
int Upgrade(const char* path) { return path[0] == '/' ? ENOEXEC : (abort(), 0); }
void UpgradeResume(int memory) { (void)memory; }

// As the first process of a container for inputs that begin with `G`.
static bool is_guard;
static int guarded_end = -1;

bool IsGuard(void) { return is_guard; }
void StartMain(char** arguments) { (void)arguments; }
void GuardBegin(char** arguments) { (void)arguments; }
void GuardResume(char** arguments, uint64_t signals) { (void)arguments, (void)signals; }
void GuardMainEnded(int status) { (void)status; }
void GuardSignal(int number) { (void)number; }
uint64_t GuardTake(void) { return UINT64_MAX; }
void GuardEnd(int status) {
  if (status < 0 || status > 255) abort();
  guarded_end = status;
}
int GuardTick(int wait) { return wait; }
int GuardStatus(void) { return -1; }

static void Work(void) {
  for (int i = 0; i < 8; i++) {
    RunsTick();
    ServerPoll(0);
  }
}

static void ForgetAll(void) {
  RunsTellEnded();
  Run over;
  char id[kMostIdBytes + 1];
  while (PastAfter(0, &over)) {
    strcpy(id, over.id);
    if (!PastRemove(id)) abort();
  }
  for (Run* run; (run = RunAfter(0)) != NULL;) RunRemove(run);
}

// Read once more from what it has written itself, it must know the same runs.
static void ReadJournal(const uint8_t* bytes, size_t size) {
  CloseFd(&keeper.journal);
  const int file = open("runs", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  dprintf(file, "K %s\n", BootId());
  if (write(file, bytes, size) < 0) abort();
  close(file);
  if (JournalOpen() != 0) abort();
  const size_t live = RunCount(), past = PastCount();
  ForgetAll();
  CloseFd(&keeper.journal);
  if (JournalOpen() != 0 || RunCount() != live || PastCount() != past) abort();
  RunsTakeStock();
  Work();
}

static int Connect(void) {
  struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (client < 0 || connect(client, (struct sockaddr*)&name, sizeof name) < 0) abort();
  return client;
}

// Each request is what stands between two bytes 0xff: inputs need no lengths then. The rest comes
// as it is.
static void Send(int client, const uint8_t* bytes, size_t size, bool is_raw) {
  char answers[1 << 16];
  while (size > 0) {
    const uint8_t* const end = is_raw ? NULL : memchr(bytes, 0xff, size);
    const uint32_t length = (uint32_t)(end == NULL ? size : (size_t)(end - bytes));
    if (!is_raw && send(client, &length, sizeof length, MSG_NOSIGNAL) < 0) return;
    if (send(client, bytes, length, MSG_NOSIGNAL) < 0) return;
    Work();
    while (recv(client, answers, sizeof answers, MSG_DONTWAIT) > 0) continue;
    bytes += length;
    size -= length;
    if (end != NULL) bytes++, size--;
  }
}

static void RemoveFolder(void) {
  const char* const kFiles[] = {"runs", "runs.new", "socket", "lock"};
  for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles; i++) unlink(kFiles[i]);
  rmdir(folder);
}

int LLVMFuzzerInitialize(int* count, char*** arguments) {
  (void)count, (void)arguments;
  if (mkdtemp(folder) == NULL) Die(folder);
  EnterFolder(folder);
  atexit(RemoveFolder);
  sigset_t none;
  sigemptyset(&none);
  keeper.signals = signalfd(-1, &none, SFD_CLOEXEC | SFD_NONBLOCK);
  keeper.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (JournalOpen() != 0) Die("runs");
  Listen();
  ServerInit();
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  if (bytes[0] == 'J') {
    ReadJournal(bytes + 1, size - 1);
  } else {
    is_guard = bytes[0] == 'G';
    const int client = Connect();
    Work();
    Send(client, bytes + 1, size - 1, bytes[0] == 'R');
    if (TellSignals(UINT64_C(1) << 15) && !is_guard) abort();
    close(client);
  }
  Work();
  if (ServerClients() != 0) abort();
  keeper.is_leaving = false;
  ForgetAll();
  if (JournalCompact() != 0) abort();
  return 0;
}
