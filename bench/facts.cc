// facts EXITS ROUNDS: what each fact of an exit costs in the kernel. Ends EXITS children by a
// signal under the programs of exitwatch, with all facts and without each of them in turn, ROUNDS
// times, and prints a line of JSON for each: the ns per exit that each program ran, by the kernel's
// count. Nobody reads the records, which all have room. Requires root.
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "core/bpf/exit_note_program.h"
#include "core/bpf/group_filter.h"
#include "core/bpf/signal_program.h"
#include "linux/bpf/bpf_program.h"
#include "linux/bpf/bpf_syscall.h"
#include "linux/bpf/cgroup_paths.h"
#include "linux/bpf/kernel_types.h"
#include "linux/connector/connector_socket.h"

using namespace exitwatch;

namespace {

constexpr size_t kRingBytes = 64 << 20;

void Check(bool holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

void CheckLoaded(const BpfRefusal& refusal, const char* what) {
  if (!refusal) return;
  fprintf(stderr, "%s was refused: %s\n", what, refusal.detail.c_str());
  exit(1);
}

// What a monitor may want.
struct Facts {
  KernelLayout exits;
  SignalLayout signals;
  bool has_command_lines = true;
  bool has_paths = true;
};

struct Variant {
  const char* name;
  void (*change)(Facts* facts);
};

constexpr Variant kVariants[] = {
    {"all", [](Facts*) {}},
    {"command lines", [](Facts* facts) { facts->has_command_lines = false; }},
    {"program and command line", [](Facts* facts) { facts->exits.executable.reset(); }},
    {"usage", [](Facts* facts) { facts->exits.usage.reset(); }},
    {"bytes read and written", [](Facts* facts) { facts->exits.usage->io.reset(); }},
    {"cgroup", [](Facts* facts) { facts->exits.cgroup.reset(); }},
    {"cgroup's path, once known", [](Facts* facts) { facts->has_paths = false; }},
    {"sender's program", [](Facts* facts) { facts->signals.executable.reset(); }},
    {"cgroups of the sender and its ancestors",
     [](Facts* facts) { facts->signals.cgroup.reset(); }},
};

UniqueFd Ring(const char* name) {
  UniqueFd ring = bpf::CreateMap(name, bpf::kRingbuf, 0, 0, kRingBytes, 0);
  Check(static_cast<bool>(ring), name);
  return ring;
}

template <typename State>
UniqueFd StateOf(const char* name) {
  UniqueFd state = bpf::CreateMap(name, bpf::kArray, 4, sizeof(State), 1, bpf::kMmapable);
  Check(static_cast<bool>(state), name);
  return state;
}

struct Attached {
  UniqueFd program, link;
};

uint64_t RunNs(const UniqueFd& program) {
  bpf::ProgramInfo info;
  Check(!program || bpf::ReadProgramInfo(program.Get(), &info), "the statistics of a program");
  return info.run_ns;
}

// The programs of a monitor of all processes, attached.
class Programs {
 public:
  explicit Programs(const Facts& facts)
      : ring_(Ring("bench_ring")), signal_ring_(Ring("bench_sring")) {
    if (facts.has_paths) {
      known_.Open();
      known_to_signals_.Open();
    }
    if (facts.exits.executable) AddNotes(facts);
    const GroupFilterMaps maps = {
        ring_.Get(), state_.Get(), -1, known_.fd(), notes_map_ ? notes_map_.Get() : -1, 0};
    const auto filter = BuildGroupFilter(facts.exits, maps, static_cast<uint32_t>(getpid()));
    CheckLoaded(LoadBpfProgram("bench_filter", bpf::kSocketFilter, filter, &filter_), "the filter");
    ConnectorSocket::Options options;
    options.receive_buffer_bytes = 1 << 20;
    options.filter_program = filter_.Get();
    Check(!socket_.Open(options), "the connector");
    const SignalTraceMaps signal_maps = {signal_ring_.Get(),     kRingBytes,
                                         signal_state_.Get(),    -1,
                                         known_to_signals_.fd(), facts.has_command_lines};
    AddTracepoint("signal_generate", BuildSignalProgram(facts.signals, signal_maps));
    AddTracepoint("signal_deliver", BuildTakenProgram(facts.signals, signal_maps));
  }

  uint64_t FilterNs() const { return RunNs(filter_); }
  uint64_t NotesNs() const { return RunNs(notes_[0].program) + RunNs(notes_[1].program); }
  uint64_t SignalsNs() const {
    uint64_t sum = 0;
    for (const Attached& each : signals_) sum += RunNs(each.program);
    return sum;
  }

 private:
  // As ExitNotes does.
  void AddNotes(const Facts& facts) {
    notes_map_ = bpf::CreateMap("bench_notes", bpf::kLruHash, sizeof(ExitNoteKey), sizeof(ExitNote),
                                4096, 0);
    const int ring = facts.has_command_lines ? ring_.Get() : -1;
    const ExitNoteMaps maps = {notes_map_.Get(), -1, ring, kRingBytes};
    const std::optional<uint32_t> function = facts.exits.executable->function;
    for (const ExitNoteTurn turn : {ExitNoteTurn::kFirst, ExitNoteTurn::kBackup}) {
      Attached& attached = notes_[turn == ExitNoteTurn::kFirst ? 0 : 1];
      CheckLoaded(LoadBpfProgram("bench_notes", function ? bpf::kTracing : bpf::kRawTracepoint,
                                 BuildExitNoteProgram(facts.exits, maps, turn), &attached.program,
                                 function.value_or(0)),
                  "the program of the notes");
      attached.link =
          bpf::OpenRawTracepoint(function ? nullptr : "sched_process_exit", attached.program.Get());
      Check(static_cast<bool>(attached.link), "sched_process_exit");
    }
  }

  void AddTracepoint(const char* name, const std::vector<bpf_insn>& program) {
    Attached attached;
    CheckLoaded(LoadBpfProgram("bench_signals", bpf::kRawTracepoint, program, &attached.program),
                name);
    attached.link = bpf::OpenRawTracepoint(name, attached.program.Get());
    Check(static_cast<bool>(attached.link), name);
    signals_.push_back(std::move(attached));
  }

  UniqueFd ring_, signal_ring_;
  UniqueFd state_ = StateOf<GroupFilterState>("bench_state");
  UniqueFd signal_state_ = StateOf<SignalTraceState>("bench_trace");
  KnownCgroups known_, known_to_signals_;
  UniqueFd notes_map_;
  Attached notes_[2];
  UniqueFd filter_;
  ConnectorSocket socket_;
  std::vector<Attached> signals_;
};

// Each is killed while it waits.
void EndChildren(long count) {
  for (long i = 0; i < count; i++) {
    const pid_t pid = fork();
    Check(pid >= 0, "fork");
    if (pid == 0) {
      for (;;) pause();
    }
    Check(kill(pid, SIGKILL) == 0 && waitpid(pid, nullptr, 0) == pid, "a child");
  }
}

UniqueFd CountRunTimes() {
  bpf_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.enable_stats.type = BPF_STATS_RUN_TIME;
  return UniqueFd(static_cast<int>(syscall(SYS_bpf, BPF_ENABLE_STATS, &attr, sizeof(attr))));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long exits = atol(argv[1]);
  Facts everything;
  KernelTypes types;
  CheckLoaded(types.ForGroups(&everything.exits), "the kernel's types");
  CheckLoaded(types.ForSignals(&everything.signals), "the kernel's types");
  const UniqueFd counting = CountRunTimes();
  Check(static_cast<bool>(counting), "BPF_ENABLE_STATS");
  for (long round = 0; round < atol(argv[2]); round++) {
    for (const Variant& variant : kVariants) {
      Facts facts = everything;
      variant.change(&facts);
      const Programs programs(facts);
      EndChildren(exits / 10);  // what is learned once
      const uint64_t before[] = {programs.FilterNs(), programs.NotesNs(), programs.SignalsNs()};
      EndChildren(exits);
      const auto per_exit = [&](uint64_t now, uint64_t then) {
        return static_cast<double>(now - then) / static_cast<double>(exits);
      };
      printf("{\"without\":\"%s\",\"filterNs\":%.1f,\"notesNs\":%.1f,\"signalsNs\":%.1f}\n",
             variant.name, per_exit(programs.FilterNs(), before[0]),
             per_exit(programs.NotesNs(), before[1]), per_exit(programs.SignalsNs(), before[2]));
      fflush(stdout);
    }
  }
}
