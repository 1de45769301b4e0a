#include <fcntl.h>
#include <napi.h>
#include <sys/file.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "abi/digest.h"
#include "abi/signal_record.h"
#include "core/bpf/spoilt_layout.h"
#include "linux/system/datagram.h"
#include "linux/system/exec_program.h"
#include "linux/system/opened_process.h"
#include "linux/system/pidfd.h"
#include "linux/system/process_signal.h"
#include "linux/system/socket_peer.h"
#include "napi/exit_reader_object.h"
#include "napi/recorder_object.h"
#include "napi/values.h"

namespace exitwatch {

namespace {

// identify(pid): what distinguishes the process from every other; undefined if there is none.
Napi::Value Identify(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const int32_t pid = info[0].ToNumber().Int32Value();
  OpenedProcess opened;
  if (const SystemError error = opened.Open(pid)) {
    return IsGone(error) ? env.Undefined() : ThrowSystemError(env, error);
  }
  Napi::Object process = Napi::Object::New(env);
  process.Set("startTicks", Napi::Number::New(env, static_cast<double>(opened.stat.start_ticks)));
  process.Set("inode", Napi::Number::New(env, static_cast<double>(opened.inode)));
  process.Set("isKernelThread", Napi::Boolean::New(env, opened.stat.IsKernelThread()));
  return process;
}

// signal(pid, startTicks, inode, number): the process's state, a ProcessState.
Napi::Value Signal(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  ProcessState state;
  const SystemError error =
      SignalProcess(info[0].ToNumber().Int32Value(), ToUint64(info[1]), ToUint64(info[2]),
                    info[3].ToNumber().Int32Value(), &state);
  if (error) return ThrowSystemError(env, error);
  return Napi::Number::New(env, static_cast<int>(state));
}

// peer(fd): the process at the other end of a socket; undefined if there is none, or it has no pid
// here.
Napi::Value Peer(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  SocketPeer peer;
  if (!LookAtPeer(info[0].ToNumber().Int32Value(), &peer)) return env.Undefined();
  Napi::Object result = Napi::Object::New(env);
  result.Set("pid", Napi::Number::New(env, peer.pid));
  result.Set("uid", Napi::Number::New(env, peer.uid));
  result.Set("inode", Napi::Number::New(env, static_cast<double>(peer.inode)));
  return result;
}

// lockFile(fd): whether this open file has the lock (flock(2)) from now on, until it is closed.
Napi::Value LockFile(const Napi::CallbackInfo& info) {
  const int fd = info[0].ToNumber().Int32Value();
  if (RetryOnEintr([&] { return flock(fd, LOCK_EX | LOCK_NB); }) == 0) {
    return Napi::Boolean::New(info.Env(), true);
  }
  if (errno == EWOULDBLOCK) return Napi::Boolean::New(info.Env(), false);
  return ThrowSystemError(info.Env(), {Failure::kSystem, errno, "flock"});
}

// sendDatagram(path, text, descriptors): sends to a unix socket.
Napi::Value SendText(const Napi::CallbackInfo& info) {
  std::vector<int> descriptors;
  const auto array = info[2].As<Napi::Array>();
  for (uint32_t i = 0; info[2].IsArray() && i < array.Length(); i++) {
    descriptors.push_back(array.Get(i).ToNumber().Int32Value());
  }
  const SystemError error = SendDatagram(info[0].ToString(), info[1].ToString(), descriptors);
  return error ? ThrowSystemError(info.Env(), error) : info.Env().Undefined();
}

std::vector<std::string> Texts(const Napi::Value& value) {
  const auto array = value.As<Napi::Array>();
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < array.Length(); i++) texts.push_back(array.Get(i).ToString());
  return texts;
}

// exec(path, arguments, environment): becomes another program; returns only to throw.
Napi::Value Exec(const Napi::CallbackInfo& info) {
  const int error = ExecProgram(info[0].ToString(), Texts(info[1]), Texts(info[2]));
  return ThrowSystemError(info.Env(), {Failure::kSystem, error, "execve"});
}

// keepFromChildren(fd): has the descriptor closed in what we run. False: it is none.
Napi::Value KeepFromChildren(const Napi::CallbackInfo& info) {
  const int fd = info[0].ToNumber().Int32Value();
  return Napi::Boolean::New(info.Env(), fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
}

// openPidfd(pid): a descriptor, which the caller closes; undefined if there is no such process.
Napi::Value OpenProcessDescriptor(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  UniqueFd fd = OpenPidfd(info[0].ToNumber().Int32Value());
  if (fd) return Napi::Number::New(env, fd.Release());
  if (IsNoSuchProcess(errno)) return env.Undefined();
  return ThrowSystemError(env, PidfdOpenFailed(errno));
}

// lookAtPidfd(fd): the state of its process, a ProcessState; its inode; the wait status, once it
// was reaped (Linux 6.15).
Napi::Value LookAtDescriptor(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const int fd = info[0].ToNumber().Int32Value();
  Napi::Object look = Napi::Object::New(env);
  look.Set("state", Napi::Number::New(env, static_cast<int>(LookAtPidfd(fd))));
  look.Set("inode", Napi::Number::New(env, static_cast<double>(PidfdInode(fd))));
  if (const std::optional<int32_t> status = PidfdExitStatus(fd)) {
    look.Set("status", Napi::Number::New(env, *status));
  }
  return look;
}

// probePidfd(): which newer features of pidfds this kernel has.
Napi::Value ProbePidfd(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  PidfdAbilities abilities;
  if (const SystemError error = TryPidfd(&abilities)) return ThrowSystemError(env, error);
  Napi::Object result = Napi::Object::New(env);
  result.Set("inodes", Napi::Boolean::New(env, abilities.has_inodes));
  result.Set("exitStatus", Napi::Boolean::New(env, abilities.has_exit_status));
  return result;
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(
      new SharedByReaders(std::shared_ptr<ExitReader::Shared>(new ExitReader::Shared)));
  exports.Set("ExitReader", ExitReaderObject::Define(env));
  exports.Set("Recorder", RecorderObject::Define(env));
  exports.Set("identify", Napi::Function::New<Identify>(env, "identify"));
  exports.Set("signal", Napi::Function::New<Signal>(env, "signal"));
  exports.Set("peer", Napi::Function::New<Peer>(env, "peer"));
  exports.Set("lockFile", Napi::Function::New<LockFile>(env, "lockFile"));
  exports.Set("sendDatagram", Napi::Function::New<SendText>(env, "sendDatagram"));
  exports.Set("exec", Napi::Function::New<Exec>(env, "exec"));
  exports.Set("keepFromChildren", Napi::Function::New<KeepFromChildren>(env, "keepFromChildren"));
  exports.Set("openPidfd", Napi::Function::New<OpenProcessDescriptor>(env, "openPidfd"));
  exports.Set("lookAtPidfd", Napi::Function::New<LookAtDescriptor>(env, "lookAtPidfd"));
  exports.Set("probePidfd", Napi::Function::New<ProbePidfd>(env, "probePidfd"));
  Napi::Array spoils = Napi::Array::New(env);
  for (const char* spoil : kSpoils) spoils.Set(spoils.Length(), Napi::String::New(env, spoil));
  exports.Set("spoils", spoils);
  exports.Set("abi", Napi::String::New(env, kAbiDigest));
  return exports;
}

}  // namespace

}  // namespace exitwatch

Napi::Object InitAddon(Napi::Env env, Napi::Object exports) {
  return exitwatch::Init(env, exports);
}

NODE_API_MODULE(NODE_GYP_MODULE_NAME, InitAddon)
