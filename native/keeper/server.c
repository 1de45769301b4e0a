// One idea: the socket, who may use it, and what may be asked.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper.h"
#include "shim.h"

enum {
  kPieceBytes = 1 << 16,
  kMostOwedBytes = 4 << 20,
  kEventsAtOnce = 64,
  kIdBits = 56,
  kAgainMs = 200,
};

typedef struct {
  uint64_t id;
  int64_t list_seq;
  uint64_t list_serial;  // the last run that was listed
  Buffer in;
  Buffer out;
  int fd;
  bool is_listing;
  bool is_watching;
  bool takes_signals;
  bool is_lost;
  bool wants_out;
  bool wants_in;
} Client;

static Client* clients[kMostClients];
static uint64_t last_client;
// When clients are accepted again for whom there was no room; 0: now.
static int64_t accept_boot_ms;
// There was no room in epoll, and so everything is looked at again and again.
static bool is_blind;

// ---- epoll

void WaitFor(int fd, Waited kind, uint64_t id) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)kind << kIdBits | id};
  if (epoll_ctl(keeper.epoll, EPOLL_CTL_ADD, fd, &event) < 0) is_blind = true;
}

// Children share our open files: to close one does not do it.
void StopWaiting(int fd) { epoll_ctl(keeper.epoll, EPOLL_CTL_DEL, fd, NULL); }

void ServerInit(void) {
  WaitFor(keeper.listening, kListening, 0);
  WaitFor(keeper.signals, kSignals, 0);
}

// ---- clients

static Client* ClientOf(uint64_t id) {
  for (size_t i = 0; i < kMostClients; i++) {
    if (clients[i] != NULL && clients[i]->id == id) return clients[i];
  }
  return NULL;
}

size_t ServerClients(void) {
  size_t number = 0;
  for (size_t i = 0; i < kMostClients; i++) number += clients[i] != NULL;
  return number;
}

static void Drop(Client* client) {
  for (size_t i = 0; i < kMostClients; i++) {
    if (clients[i] == client) clients[i] = NULL;
  }
  for (Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) {
    if (run->start_client == client->id) run->start_client = 0;
    if (run->hold_client != client->id) continue;
    run->hold_client = 0;
    RunPause(run, run->is_paused, false);
  }
  StopWaiting(client->fd);
  CloseFd(&client->fd);
  BufferFree(&client->in);
  BufferFree(&client->out);
  free(client);
}

static void Flush(Client* client) {
  while (client->out.size > 0) {
    const ssize_t sent =
        send(client->fd, client->out.bytes, client->out.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      client->is_lost = true;
      return;
    }
    BufferDrop(&client->out, (size_t)sent);
  }
  // Who does not read is not waited for: it connects again, and asks for the list.
  if (client->out.size > kMostOwedBytes) client->is_lost = true;
}

// Takes more requests only from those who read the answers.
static void Interest(Client* client) {
  const bool out = client->out.size > 0;
  const bool in = client->out.size < kPieceBytes;
  if (out == client->wants_out && in == client->wants_in) return;
  client->wants_out = out;
  client->wants_in = in;
  struct epoll_event event = {
      .events = (in ? EPOLLIN : 0) | (out ? EPOLLOUT : 0),
      .data.u64 = (uint64_t)kClient << kIdBits | client->id,
  };
  epoll_ctl(keeper.epoll, EPOLL_CTL_MOD, client->fd, &event);
}

static void TellClients(const char* event, const Run* run, const char* text) {
  for (size_t i = 0; i < kMostClients; i++) {
    Client* const client = clients[i];
    if (client == NULL || !client->is_watching) continue;
    const size_t begin = MessageBegin(&client->out);
    MessageText(&client->out, "event", event);
    RunDescribe(&client->out, run);
    if (text != NULL) MessageText(&client->out, "notify", text);
    MessageEnd(&client->out, begin);
  }
}

void TellAll(const char* event, const Run* run) { TellClients(event, run, NULL); }

void TellNotify(const Run* run, const char* text) { TellClients("notify", run, text); }

static void TellSignalsTo(Client* client, uint64_t signals) {
  for (int number = 1; number < 64; number++) {
    if ((signals & UINT64_C(1) << number) == 0) continue;
    const size_t begin = MessageBegin(&client->out);
    MessageText(&client->out, "event", "signal");
    MessageNumber(&client->out, "signal", number);
    MessageEnd(&client->out, begin);
  }
}

bool TellSignals(uint64_t signals) {
  for (size_t i = 0; i < kMostClients; i++) {
    if (clients[i] == NULL || !clients[i]->takes_signals || clients[i]->is_lost) continue;
    TellSignalsTo(clients[i], signals);
    return true;
  }
  return false;
}

static size_t AnswerBegin(Client* client, int64_t seq) {
  const size_t begin = MessageBegin(&client->out);
  MessageNumber(&client->out, "seq", seq);
  return begin;
}

static void AnswerOk(Client* client, int64_t seq) {
  const size_t begin = AnswerBegin(client, seq);
  MessageText(&client->out, "ok", "1");
  MessageEnd(&client->out, begin);
}

static void AnswerError(Client* client, int64_t seq, const char* code, const char* detail,
                        int error) {
  const size_t begin = AnswerBegin(client, seq);
  MessageText(&client->out, "error", code);
  if (detail != NULL) MessageText(&client->out, "detail", detail);
  if (error != 0) MessageNumber(&client->out, "errno", error);
  MessageEnd(&client->out, begin);
}

static void AnswerRun(Client* client, int64_t seq, const Run* run, const char* flag) {
  const size_t begin = AnswerBegin(client, seq);
  if (flag != NULL) MessageText(&client->out, flag, "1");
  RunDescribe(&client->out, run);
  MessageEnd(&client->out, begin);
}

void AnswerStart(const Run* run) {
  Client* const client = ClientOf(run->start_client);
  ((Run*)run)->start_client = 0;
  if (client != NULL) AnswerRun(client, run->start_seq, run, "ok");
}

// ---- requests

// Those that wait would wake us at once.
static void AcceptLater(void) {
  StopWaiting(keeper.listening);
  accept_boot_ms = BootMs() + kAgainMs;
}

static void Accept(void) {
  for (;;) {
    ReserveFiles(true);
    const int fd = accept4(keeper.listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ReserveFiles(false);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0 && errno != EAGAIN) return AcceptLater();
    if (fd < 0) return;
    struct ucred peer;
    socklen_t size = sizeof peer;
    size_t free_place = 0;
    while (free_place < kMostClients && clients[free_place] != NULL) free_place++;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
        (peer.uid != geteuid() && peer.uid != 0) || free_place == kMostClients) {
      close(fd);
      continue;
    }
    Client* const client = Need(calloc(1, sizeof *client));
    client->fd = fd;
    client->id = ++last_client;
    client->wants_in = true;
    clients[free_place] = client;
    WaitFor(fd, kClient, client->id);
    const size_t begin = MessageBegin(&client->out);
    MessageText(&client->out, "event", "hello");
    MessageNumber(&client->out, "protocol", kProtocol);
    MessageText(&client->out, "version", KEEPER_VERSION);
    MessageNumber(&client->out, "pid", getpid());
    MessageText(&client->out, "bootId", BootId());
    MessageText(&client->out, "can", "pidfile");  // what the first keepers could not
    MessageText(&client->out, "can", "openFiles");
    if (IsGuard()) MessageText(&client->out, "can", "guard");
    MessageEnd(&client->out, begin);
    Flush(client);
    Interest(client);
  }
}

bool IsRunId(const char* id) {
  if (id == NULL || *id == '\0' || strlen(id) > kMostIdBytes) return false;
  for (const char* at = id; *at != '\0'; at++) {
    if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@", *at) == NULL)
      return false;
  }
  return *id != '.';  // it becomes the name of a cgroup and of a file
}

static const char* const kStartKeys[] = {
    "seq",     "op",    "run",      "file",    "arg",     "env",       "cwd", "umask",  "uid",
    "gid",     "group", "noGroups", "noRoot",  "cgroup",  "out",       "err", "notify", "envFile",
    "pidfile", "fifo",  "logFile",  "logMost", "logKeep", "openFiles", NULL};

static bool IsPath(const char* path) {
  return path == NULL || (path[0] == '/' && strpbrk(path, "\t\n") == NULL && strlen(path) < 4000);
}

// NULL, or the key that is wrong.
static const char* ReadSpec(Request request, StartSpec* spec) {
  bool bad = false;
  spec->file = RequestText(request, "file");
  spec->directory = RequestText(request, "cwd");
  spec->environment_file = RequestText(request, "envFile");
  spec->out = RequestText(request, "out");
  spec->err = RequestText(request, "err");
  spec->pidfile = RequestText(request, "pidfile");
  spec->uid = RequestNumber(request, "uid", -1, UINT32_MAX - 1, &bad);
  spec->gid = RequestNumber(request, "gid", -1, UINT32_MAX - 1, &bad);
  spec->mask = RequestNumber(request, "umask", 022, 0777, &bad);
  spec->log_most = RequestNumber(request, "logMost", 0, INT64_MAX, &bad);
  spec->log_keep = RequestNumber(request, "logKeep", 1, 1000, &bad);
  spec->open_files = RequestNumber(request, "openFiles", -1, INT64_MAX, &bad);
  spec->refuses_root = RequestText(request, "noRoot") != NULL;
  if (bad) return "number";
  if (spec->file == NULL || *spec->file == '\0') return "file";
  if (spec->directory == NULL) spec->directory = "/";
  for (size_t i = 0; i < 7; i++) {
    static const char* const kPaths[] = {"cwd",    "envFile", "out",    "err",
                                         "cgroup", "logFile", "pidfile"};
    if (!IsPath(RequestText(request, kPaths[i]))) return kPaths[i];
  }
  char** const groups = RequestTexts(request, "group");
  for (spec->group_count = 0; groups[spec->group_count] != NULL;) spec->group_count++;
  spec->groups = Need(calloc(spec->group_count + 1, sizeof *spec->groups));
  for (size_t i = 0; i < spec->group_count; i++) {
    int64_t group;
    bad |= !ParseNumber(groups[i], &group) || group >= UINT32_MAX;
    spec->groups[i] = (gid_t)group;
  }
  free(groups);
  spec->has_groups = spec->group_count > 0;
  if (bad) return "group";
  spec->arguments = RequestTexts(request, "arg");
  spec->environment = RequestTexts(request, "env");
  if (spec->arguments[0] == NULL) return "arg";
  for (char** at = spec->environment; *at != NULL; at++) {
    if (strchr(*at, '=') == NULL || **at == '=') return "env";
  }
  return NULL;
}

static void FreeSpec(StartSpec* spec) {
  free(spec->arguments);
  free(spec->environment);
  free(spec->groups);
}

static char* CopyField(Request request, const char* key) {
  const char* const text = RequestText(request, key);
  return text == NULL ? NULL : Copy(text);
}

static int Begin(Run* run, Request request, StartSpec* spec) {
  char address[128] = "NOTIFY_SOCKET=";
  ReserveFiles(true);
  if (RequestText(request, "notify") != NULL) {
    const int error = NotifyOpen(run, address + 14, sizeof address - 14);
    if (error != 0) {
      run->step = Copy("notify");
      return error;
    }
    size_t number = 0, kept = 0;
    while (spec->environment[number] != NULL) number++;
    spec->environment = Need(realloc(spec->environment, (number + 2) * sizeof(char*)));
    // Not beside the one of a supervisor that systemd started: the first one counts.
    for (size_t i = 0; i < number; i++) {
      if (strncmp(spec->environment[i], address, 14) != 0)
        spec->environment[kept++] = spec->environment[i];
    }
    spec->environment[kept] = address;
    spec->environment[kept + 1] = NULL;
  }
  return SpawnRun(run, spec);
}

// The journal does not know it, and so it does not run.
static void TakeBack(Run* run) {
  CloseFd(&run->go_fd);
  CloseFd(&run->exec_fd);
  CloseFd(&run->shim_fd);
  run->pid = 0;
  free(run->step);
  run->step = Copy("journal");
}

static void Start(Client* client, int64_t seq, Request request) {
  const char* const id = RequestText(request, "run");
  const char* const unknown = RequestUnknown(request, kStartKeys);
  if (unknown != NULL) {
    // Its name only: the value may be a secret.
    char* const key = strndup(unknown, strcspn(unknown, "="));
    AnswerError(client, seq, "unsupported", Need(key), 0);
    return free(key);
  }
  Run* run = RunFind(id);
  if (run != NULL) {
    // An id starts once: this is the answer that somebody did not live to hear.
    return AnswerRun(client, seq, run, "existed");
  }
  Run over;
  if (PastFind(id, &over)) return AnswerRun(client, seq, &over, "existed");
  if (keeper.is_leaving && IsGuard()) return AnswerError(client, seq, "leaving", NULL, 0);
  keeper.is_leaving = false;  // who was asked to end goes on for those who need it
  StartSpec spec = {0};
  const char* const wrong = ReadSpec(request, &spec);
  if (wrong != NULL) {
    FreeSpec(&spec);
    return AnswerError(client, seq, "bad-request", wrong, 0);
  }
  run = RunAdd(id);
  run->started_ms = WallMs();
  run->started_boot_ms = BootMs();
  run->uid = spec.uid >= 0 ? (uint32_t)spec.uid : geteuid();
  run->cgroup = CopyField(request, "cgroup");
  run->log_file = CopyField(request, "logFile");
  if (run->log_file != NULL) {
    // Beside the journal: the disk of the log may not answer. What a client names is ignored.
    char fifo[kMostIdBytes + 8];
    snprintf(fifo, sizeof fifo, "fifo.%s", id);
    run->log_fifo = Copy(fifo);
  }
  run->log_most = spec.log_most;
  run->log_keep = (int)spec.log_keep;
  int error = JournalBegin(run);
  if (error != 0) {
    RunRemove(run);
    FreeSpec(&spec);
    return AnswerError(client, seq, "journal", NULL, error);
  }
  error = Begin(run, request, &spec);
  ReserveFiles(false);
  FreeSpec(&spec);
  if (error == 0 && (error = JournalStarted(run)) != 0) TakeBack(run);
  if (error != 0) {
    run->state = kFailed;
    run->error = error;
    run->ended_ms = WallMs();
    run->is_stored = JournalEnded(run) == 0;
    CloseFd(&run->notify_fd);
    AnswerRun(client, seq, run, "ok");
    return TellAll("ended", run);
  }
  Go(run);
  run->start_client = client->id;
  run->start_seq = seq;
  WaitFor(run->exec_fd, kExecFd, run->serial);
  if (run->shim_fd >= 0) WaitFor(run->shim_fd, kShimFd, run->serial);
  if (run->notify_fd >= 0) WaitFor(run->notify_fd, kNotifyFd, run->serial);
}

static void Signal(Client* client, int64_t seq, Request request, Run* run) {
  bool bad = false;
  const int64_t number = RequestNumber(request, "signal", -1, 64, &bad);
  if (bad || number < 0) return AnswerError(client, seq, "bad-request", "signal", 0);
  const bool is_tree = RequestText(request, "tree") != NULL;
  int error = ESRCH;
  if (is_tree)
    error = TreeSignal(run, (int)number);
  else if (RunIsAlive(run) && run->pid != 0)
    error = MainSignal(run, (int)number);
  if (error != 0) return AnswerError(client, seq, error == ESRCH ? "gone" : "system", NULL, error);
  AnswerOk(client, seq);
}

static void Look(Client* client, int64_t seq, const Run* run) {
  Members members = {0};
  TreeMembers(run, &members);
  const size_t begin = AnswerBegin(client, seq);
  RunDescribe(&client->out, run);
  for (size_t i = 0; i < members.count; i++) {
    char text[64];
    snprintf(text, sizeof text, "%d %lld %c", members.list[i].pid, (long long)members.list[i].ticks,
             members.list[i].state);
    MessageText(&client->out, "member", text);
  }
  if (TreeIsFrozen(run)) MessageText(&client->out, "frozen", "1");
  MessageEnd(&client->out, begin);
  free(members.list);
}

static void Forget(Client* client, int64_t seq, Run* run) {
  RunsTellEnded();
  if (RunIsAlive(run) || (run->has_left && !TreeIsEmpty(run)) || run->log_pid != 0)
    return AnswerError(client, seq, "busy", NULL, 0);
  const int error = JournalForgotten(run->id);
  if (error != 0) return AnswerError(client, seq, "journal", NULL, error);
  if (run->cgroup != NULL) CgroupRemove(run->cgroup);
  ShimForget(run->id);
  RunRemove(run);
  JournalCompactIfDue();
  AnswerOk(client, seq);
}

static void ForgetPast(Client* client, int64_t seq, const char* id, const Run* over) {
  const int error = JournalForgotten(id);
  if (error != 0) return AnswerError(client, seq, "journal", NULL, error);
  if (over->cgroup != NULL) CgroupRemove(over->cgroup);
  ShimForget(id);
  PastRemove(id);
  JournalCompactIfDue();
  AnswerOk(client, seq);
}

// What may be asked of a run that is over.
static void HandlePast(Client* client, int64_t seq, const char* op, const char* id,
                       const Run* over) {
  if (strcmp(op, "forget") == 0) return ForgetPast(client, seq, id, over);
  if (strcmp(op, "look") == 0) return AnswerRun(client, seq, over, NULL);
  if (strcmp(op, "kill") == 0) return AnswerOk(client, seq);
  AnswerError(client, seq, "gone", NULL, ESRCH);
}

static void Pause(Client* client, int64_t seq, Request request, Run* run, bool on) {
  const bool is_hold = RequestText(request, "whileConnected") != NULL;
  // To end a hold leaves paused what was paused before; to resume ends both.
  const int error = RunPause(run, is_hold ? run->is_paused : on, is_hold ? on : on && run->is_held);
  if (error != 0) return AnswerError(client, seq, error == ESRCH ? "gone" : "system", NULL, error);
  if (!run->is_held) run->hold_client = 0;
  if (is_hold && on) run->hold_client = client->id;
  AnswerOk(client, seq);
}

static bool IsOperation(const char* op) {
  static const char* const kOfARun[] = {"start", "look",   "forget", "signal",
                                        "pause", "resume", "kill"};
  for (size_t i = 0; i < sizeof kOfARun / sizeof *kOfARun; i++) {
    if (strcmp(op, kOfARun[i]) == 0) return true;
  }
  return false;
}

// The last one takes them: the one before may not have noticed yet that it is dead.
static void Guard(Client* client, int64_t seq) {
  if (!IsGuard()) return AnswerError(client, seq, "unsupported", "guard", 0);
  for (size_t i = 0; i < kMostClients; i++) {
    if (clients[i] != NULL) clients[i]->takes_signals = clients[i] == client;
  }
  AnswerOk(client, seq);
  TellSignalsTo(client, GuardTake());
}

static void End(Client* client, int64_t seq, Request request) {
  bool bad = false;
  const int64_t status = RequestNumber(request, "status", -1, 255, &bad);
  if (bad || status < 0) return AnswerError(client, seq, "bad-request", "status", 0);
  if (!IsGuard()) return AnswerError(client, seq, "unsupported", "end", 0);
  GuardEnd((int)status);
  AnswerOk(client, seq);
}

static void Handle(Client* client, Request request) {
  bool bad = !RequestIsWellFormed(request);
  const char* const op = bad ? NULL : RequestText(request, "op");
  const int64_t seq = bad ? -1 : RequestNumber(request, "seq", -1, INT64_MAX, &bad);
  if (bad || op == NULL || seq < 0) {
    client->is_lost = true;  // whatever this is, it is not our protocol
    return;
  }
  if (strcmp(op, "watch") == 0) {
    client->is_watching = true;
    return AnswerOk(client, seq);
  }
  if (strcmp(op, "ping") == 0) return AnswerOk(client, seq);
  if (strcmp(op, "list") == 0) {
    client->is_listing = true;
    client->list_seq = seq;
    client->list_serial = 0;
    return;
  }
  if (strcmp(op, "upgrade") == 0) {
    const char* const path = RequestText(request, "path");
    if (path == NULL || !IsPath(path)) return AnswerError(client, seq, "bad-request", "path", 0);
    // Its client would lose its connection, and with that what it relies on.
    for (const Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) {
      if (run->is_held) return AnswerError(client, seq, "busy", NULL, 0);
    }
    return AnswerError(client, seq, "system", path, Upgrade(path));
  }
  if (strcmp(op, "guard") == 0) return Guard(client, seq);
  if (strcmp(op, "end") == 0) return End(client, seq, request);
  if (strcmp(op, "leave") == 0) {
    if (IsGuard()) return AnswerError(client, seq, "busy", NULL, 0);
    if (RunsAlive()) return AnswerError(client, seq, "busy", NULL, 0);
    keeper.is_leaving = true;
    return AnswerOk(client, seq);
  }
  if (!IsOperation(op)) return AnswerError(client, seq, "unsupported", op, 0);
  const char* const id = RequestText(request, "run");
  if (!IsRunId(id)) return AnswerError(client, seq, "bad-request", "run", 0);
  if (strcmp(op, "start") == 0) return Start(client, seq, request);
  Run over;
  Run* const run = RunFind(id);
  if (run == NULL && PastFind(id, &over)) return HandlePast(client, seq, op, id, &over);
  if (run == NULL) return AnswerError(client, seq, "no-run", NULL, 0);
  if (strcmp(op, "look") == 0) return Look(client, seq, run);
  if (strcmp(op, "forget") == 0) return Forget(client, seq, run);
  if (strcmp(op, "signal") == 0) return Signal(client, seq, request, run);
  if (strcmp(op, "pause") == 0) return Pause(client, seq, request, run, true);
  if (strcmp(op, "resume") == 0) return Pause(client, seq, request, run, false);
  run->is_killing = true;
  run->kill_wait_ms = 0;
  run->kill_next_boot_ms = 0;
  AnswerOk(client, seq);
}

static bool HasRequest(const Client* client) {
  uint32_t size;
  if (client->in.size < sizeof size) return false;
  memcpy(&size, client->in.bytes, sizeof size);
  return size > kMostRequestBytes || client->in.size - sizeof size >= size;
}

// Without anything more from the client: nothing would wake us for it.
static bool CanGoOn(const Client* client) {
  return !client->is_lost && client->out.size < kPieceBytes &&
         (client->is_listing || HasRequest(client));
}

static void HandleAll(Client* client) {
  size_t at = 0;
  while (!client->is_lost && !client->is_listing && client->out.size < kPieceBytes &&
         client->in.size - at >= 4) {
    uint32_t size;
    memcpy(&size, client->in.bytes + at, sizeof size);
    if (size == 0 || size > kMostRequestBytes) {
      client->is_lost = true;
      return;
    }
    if (client->in.size - at - 4 < size) break;
    Handle(client, (Request){client->in.bytes + at + 4, size});
    at += 4 + size;
  }
  if (at > 0) BufferDrop(&client->in, at);
}

// A part of the list at a time: it may be longer than what we want to keep.
static void List(Client* client) {
  while (client->out.size < kPieceBytes) {
    Run over;
    const Run* run = RunAfter(client->list_serial);
    if (PastAfter(client->list_serial, &over) && (run == NULL || over.serial < run->serial))
      run = &over;
    if (run == NULL) break;
    client->list_serial = run->serial;
    AnswerRun(client, client->list_seq, run, "item");
  }
  if (client->out.size >= kPieceBytes) return;
  client->is_listing = false;
  AnswerOk(client, client->list_seq);
}

static void Serve(Client* client, uint32_t events) {
  if ((events & EPOLLIN) != 0) {
    char piece[kPieceBytes];
    const ssize_t size = recv(client->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) client->is_lost = true;
    if (size > 0) BufferAdd(&client->in, piece, (size_t)size);
  }
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 && (events & EPOLLIN) == 0) client->is_lost = true;
}

// Until nothing more can be done for anybody.
static void ServeAll(void) {
  for (size_t i = 0; i < kMostClients; i++) {
    Client* const client = clients[i];
    if (client == NULL) continue;
    do {
      if (client->is_listing) List(client);
      HandleAll(client);
      if (client->out.size > 0 && !client->is_lost) Flush(client);
    } while (CanGoOn(client));
    if (client->is_lost)
      Drop(client);
    else
      Interest(client);
  }
}

static void ReadSignals(void) {
  struct signalfd_siginfo info;
  while (read(keeper.signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (IsGuard())
      GuardSignal((int)info.ssi_signo);
    else if (keeper.main_pid != 0)
      kill(keeper.main_pid, (int)info.ssi_signo);
    else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
      keeper.is_leaving = true;  // when the last run has ended, and nobody is connected
  }
}

static void OnRun(Waited kind, uint64_t serial) {
  Run* const run = RunAfter(serial - 1);
  if (run == NULL || run->serial != serial) return;
  if (kind == kExecFd) RunReadExec(run);
  if (kind == kShimFd) RunReadShim(run);
  if (kind == kNotifyFd && run->notify_fd >= 0) NotifyRead(run);
}

// What was told since the last time. Whether there is then room for more.
static bool FlushAll(void) {
  bool can_go_on = false;
  for (size_t i = 0; i < kMostClients; i++) {
    Client* const client = clients[i];
    if (client == NULL || client->out.size == 0) continue;
    Flush(client);
    if (client->is_lost)
      Drop(client);
    else
      Interest(client);
    can_go_on |= clients[i] != NULL && CanGoOn(client);
  }
  return can_go_on;
}

static int AcceptAgain(int wait_ms) {
  const int64_t left = accept_boot_ms - BootMs();
  if (left > 0) return wait_ms < 0 || left < wait_ms ? (int)left : wait_ms;
  accept_boot_ms = 0;
  WaitFor(keeper.listening, kListening, 0);
  return wait_ms;
}

static void LookAtAll(void) {
  if (accept_boot_ms == 0) Accept();
  ReadSignals();
  for (size_t i = 0; i < kMostClients; i++) {
    if (clients[i] != NULL && clients[i]->wants_in) Serve(clients[i], EPOLLIN);
  }
  for (Run* run = RunAfter(0); run != NULL; run = RunAfter(run->serial)) {
    RunReadExec(run);
    RunReadShim(run);
    if (run->notify_fd >= 0) NotifyRead(run);
  }
}

void ServerPoll(int wait_ms) {
  if (FlushAll()) wait_ms = 0;
  if (accept_boot_ms != 0) wait_ms = AcceptAgain(wait_ms);
  if (is_blind && (wait_ms < 0 || wait_ms > kAgainMs)) wait_ms = kAgainMs;
  struct epoll_event events[kEventsAtOnce];
  const int number = epoll_wait(keeper.epoll, events, kEventsAtOnce, wait_ms);
  for (int i = 0; i < number; i++) {
    const Waited kind = (Waited)(events[i].data.u64 >> kIdBits);
    const uint64_t id = events[i].data.u64 & ((UINT64_C(1) << kIdBits) - 1);
    if (kind == kListening) Accept();
    if (kind == kSignals) ReadSignals();
    if (kind == kClient && ClientOf(id) != NULL) Serve(ClientOf(id), events[i].events);
    if (kind == kExecFd || kind == kShimFd || kind == kNotifyFd) OnRun(kind, id);
  }
  if (is_blind) LookAtAll();
  RunsReap();
  RunsTellEnded();
  ServeAll();
}
