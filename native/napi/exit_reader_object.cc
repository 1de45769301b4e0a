// One idea: the methods of JavaScript's ExitReader, which share one state.
#include "napi/exit_reader_object.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "napi/descriptions.h"
#include "napi/loop_doorbell.h"
#include "napi/values.h"

namespace exitwatch {

namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

constexpr napi_type_tag kTypeTag = {0x3b1f7e0a9c5d4286, 0x8e2a64d7f1c90b53};

}  // namespace

Napi::Function ExitReaderObject::Define(Napi::Env env) {
  return DefineClass(env, "ExitReader",
                     {
                         InstanceMethod<&ExitReaderObject::Start>("start"),
                         InstanceMethod<&ExitReaderObject::Watch>("watch"),
                         InstanceMethod<&ExitReaderObject::WatchPid>("watchPid"),
                         InstanceMethod<&ExitReaderObject::Unwatch>("unwatch"),
                         InstanceMethod<&ExitReaderObject::Filter>("filter"),
                         InstanceMethod<&ExitReaderObject::Trace>("trace"),
                         InstanceMethod<&ExitReaderObject::Trial>("trial"),
                         InstanceMethod<&ExitReaderObject::AwaitTrace>("awaitTrace"),
                         InstanceMethod<&ExitReaderObject::CgroupPath>("cgroupPath"),
                         InstanceMethod<&ExitReaderObject::CommandLine>("commandLine"),
                         InstanceMethod<&ExitReaderObject::Listen>("listen"),
                         InstanceMethod<&ExitReaderObject::Stats>("stats"),
                         InstanceMethod<&ExitReaderObject::Ref>("ref"),
                         InstanceMethod<&ExitReaderObject::Unref>("unref"),
                         InstanceMethod<&ExitReaderObject::Close>("close"),
                     });
}

ExitReaderObject::ExitReaderObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsObject()) {
    Napi::TypeError::New(env, "ExitReader(options)").ThrowAsJavaScriptException();
    return;
  }
  info.This().As<Napi::Object>().TypeTag(&kTypeTag);
  const auto options = info[0].As<Napi::Object>();
  // A missing option was renamed on one side only.
  const char* missing = nullptr;
  const auto option = [&](const char* name) {
    const Napi::Value value = options.Get(name);
    if (value.IsUndefined()) missing = name;
    return value;
  };
  ExitReader::Options native;
  native.stream.watched_only = option("watchedOnly").ToBoolean();
  native.stream.force_cbpf = option("forceCbpf").ToBoolean();
  native.stream.receive_buffer_bytes = option("receiveBufferBytes").ToNumber().Int32Value();
  native.use = static_cast<ExitReader::StreamUse>(option("streamUse").ToNumber().Int32Value());
  native.traces_signals = option("tracesSignals").ToBoolean();
  native.spoil = option("spoil").ToString();
  native.opens_pidfds = option("opensPidfds").ToBoolean();
  native.queue_limit = static_cast<size_t>(option("queueLimit").ToNumber().Int64Value());
  native.canary_interval_ns = kNsPerMs * ToUint64(option("canaryIntervalMs"));
  native.status_timeout_ns = kNsPerMs * ToUint64(option("statusTimeoutMs"));
  native.max_delay_ns = kNsPerMs * ToUint64(option("maxDelayMs"));
  native.tells_command_lines = option("commandLines").ToBoolean();
  if (missing != nullptr) {
    Napi::TypeError::New(env, std::string("ExitReader requires the option ") + missing)
        .ThrowAsJavaScriptException();
    return;
  }
  reader_ = std::make_unique<ExitReader>(native, *env.GetInstanceData<SharedByReaders>(),
                                         [this] { WakeJavaScript(); });
}

ExitReaderObject::~ExitReaderObject() { Shutdown(); }  // a running one is referenced: see Start()

bool ExitReaderObject::IsOurs(const Napi::CallbackInfo& info) {
  if (info.This().As<Napi::Object>().CheckTypeTag(&kTypeTag) && reader_) return true;
  Napi::TypeError::New(info.Env(), "not an open ExitReader").ThrowAsJavaScriptException();
  return false;
}

Napi::Value ExitReaderObject::Start(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info) || running_) return env.Undefined();
  if (!info[0].IsArrayBuffer() || !info[1].IsArrayBuffer() || !info[2].IsFunction()) {
    Napi::TypeError::New(env, "start(batch, signals, onBatch)").ThrowAsJavaScriptException();
    return env.Undefined();
  }
  auto batch = info[0].As<Napi::ArrayBuffer>();
  batch_ = Napi::Reference<Napi::ArrayBuffer>::New(batch, 1);
  records_ = static_cast<uint8_t*>(batch.Data());
  capacity_ = batch.ByteLength() / kRecordBytes;
  auto signals = info[1].As<Napi::ArrayBuffer>();
  signal_batch_ = Napi::Reference<Napi::ArrayBuffer>::New(signals, 1);
  signals_ = static_cast<SignalRecord*>(signals.Data());
  signal_capacity_ = signals.ByteLength() / sizeof(SignalRecord);
  wakeup_ = Wakeup::New(env, info[2].As<Napi::Function>(), "exitwatch", 0, 1, this);
  running_ = true;
  this->Napi::ObjectWrap<ExitReaderObject>::Ref();
  // Added after the thread-safe function's own hook, so that it runs first: the thread must be gone
  // before the function that it calls.
  napi_add_env_cleanup_hook(env, OnEnvironmentEnd, this);
  const SystemError error = reader_->Start();
  if (!error) return env.Undefined();
  CloseRunning(env);
  return ThrowSystemError(env, error);
}

// For any thread. Only one call is pending at a time: it takes whatever has come meanwhile.
void ExitReaderObject::WakeJavaScript() {
  if (!woken_.exchange(true)) wakeup_.NonBlockingCall();
}

void ExitReaderObject::CallJs(Napi::Env env, Napi::Function on_batch, ExitReaderObject* self,
                              void* /*unused*/) {
  // Without an environment the call comes too late: the environment is being torn down.
  if (env == nullptr || !self->running_) return;
  if (self->reader_->offers_stream()) self->TakeStream(env, on_batch);
  self->Deliver(env, on_batch);
}

void ExitReaderObject::TakeStream(Napi::Env env, Napi::Function on_batch) {
  if (!reader_->TakeStream()) return;
  if (doorbell_ == nullptr) {
    const auto name = Napi::String::New(env, "exitwatch");
    if (napi_async_init(env, Value(), name, &context_) != napi_ok) return;
    on_batch_ = Napi::Persistent(on_batch);
    doorbell_ = LoopDoorbell::New(
        env, reader_->doorbell(), [this] { OnDoorbell(); }, [this] { doorbell_ = nullptr; });
  }
  // Without a doorbell, the kernel wakes the reader's thread.
  if (doorbell_ == nullptr) return;
  doorbell_->Start();
}

// The kernel woke the loop, which reads the stream itself.
void ExitReaderObject::OnDoorbell() {
  if (!running_) return;
  woken_ = true;  // no other wakeup is needed
  if (!reader_->ReadInLoop()) doorbell_->Stop();
  const bool is_quiet = reader_->queue().Depth() == 0 && reader_->signals().queue().Depth() == 0;
  if (is_quiet) {
    woken_ = false;
    // Something may have come in between.
    if (reader_->queue().Depth() == 0 && reader_->signals().queue().Depth() == 0) return;
    woken_ = true;
  }
  const Napi::Env env = Env();
  const Napi::HandleScope handles(env);
  // A listener may close and release the reader while it is being called.
  const Napi::Value keep_alive = Value();
  napi_callback_scope scope = nullptr;
  // An environment that is being torn down has none.
  if (napi_open_callback_scope(env, keep_alive, context_, &scope) != napi_ok) {
    woken_ = false;
    return;
  }
  Deliver(env, on_batch_.Value());
  // Like Node.js after a call of a thread-safe function.
  napi_value exception = nullptr;
  bool is_pending = false;
  if (napi_is_exception_pending(env, &is_pending) == napi_ok && is_pending &&
      napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
    napi_fatal_exception(env, exception);
  }
  napi_close_callback_scope(env, scope);
}

void ExitReaderObject::Deliver(Napi::Env env, Napi::Function on_batch) {
  woken_ = false;
  // A listener may close and release the reader while it is being called.
  [[maybe_unused]] const Napi::Value keep_alive = Value();
  // Only what is there now: what comes meanwhile waits for the next turn of the event loop.
  size_t left = reader_->queue().Depth();
  bool may_go_on = true;
  size_t signals_left = reader_->signals().queue().Depth();
  while (signals_left > 0 && may_go_on) {
    const size_t most = std::min(signal_capacity_, signals_left);
    const size_t count = reader_->signals().queue().Take(signals_, most);
    if (count == 0) break;
    signals_left -= count;
    may_go_on = Call(env, on_batch, 0, count) && running_;
  }
  while (left > 0 && may_go_on) {
    const size_t count = TakeRecords(std::min(capacity_, left));
    if (count == 0) break;
    left -= count;
    may_go_on = Call(env, on_batch, count, 0) && running_;
  }
  if (running_ && reader_->queue().Depth() > 0) WakeJavaScript();
}

size_t ExitReaderObject::TakeRecords(size_t most) {
  uint8_t* place = records_;
  return reader_->queue().Take(most, [&place](const Record& record) {
    std::visit([place](const auto& each) { std::memcpy(place, &each, sizeof(each)); }, record);
    place += kRecordBytes;
  });
}

// Does not use Napi::Function: in an environment that is being terminated, any call may fail, and
// that is not an error. An exception stays pending, and becomes an uncaught one.
bool ExitReaderObject::Call(Napi::Env env, Napi::Function on_batch, size_t records,
                            size_t signals) {
  const Napi::HandleScope scope(env);
  napi_value arguments[2] = {};
  return napi_create_double(env, static_cast<double>(records), &arguments[0]) == napi_ok &&
         napi_create_double(env, static_cast<double>(signals), &arguments[1]) == napi_ok &&
         napi_call_function(env, env.Undefined(), on_batch, 2, arguments, nullptr) == napi_ok;
}

Napi::Value ExitReaderObject::Watch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  SystemError error;
  const WatchedProcesses::Result result = reader_->watched().Add(
      info[0].ToNumber().Int32Value(), ToUint64(info[1]), ToUint64(info[2]), &error);
  if (result == WatchedProcesses::Result::kFailed) return ThrowSystemError(env, error);
  reader_->OnWatch();
  return Napi::Number::New(env, static_cast<int>(result));
}

// Undefined if the process is gone or cannot be watched: watch() says why.
Napi::Value ExitReaderObject::WatchPid(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  SystemError error;
  GroupIdentity added = {};
  const WatchedProcesses::Result result =
      reader_->watched().AddByPid(info[0].ToNumber().Int32Value(), &added, &error);
  using Result = WatchedProcesses::Result;
  if (result == Result::kFailed || result == Result::kGone) return env.Undefined();
  reader_->OnWatch();
  Napi::Object watched = Napi::Object::New(env);
  watched.Set("result", Napi::Number::New(env, static_cast<int>(result)));
  watched.Set("startTicks", Napi::Number::New(env, static_cast<double>(added.start_ticks)));
  watched.Set("inode", Napi::Number::New(env, static_cast<double>(added.inode)));
  return watched;
}

Napi::Value ExitReaderObject::Unwatch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  reader_->watched().Remove(info[0].ToNumber().Int32Value(), ToUint64(info[1]), ToUint64(info[2]));
  return env.Undefined();
}

// Why the eBPF filter is not in use. Valid once `onBatch` has got the kReady record.
Napi::Value ExitReaderObject::Filter(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  return DescribeRefusal(env, reader_->filter_refusal());
}

// Why signals are not traced. Valid once the reader is ready.
Napi::Value ExitReaderObject::Trace(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  return DescribeRefusal(env, reader_->signals().refusal());
}

// What the trace reported about signals from known senders; undefined if there is no trace. Valid
// once the reader is ready.
Napi::Value ExitReaderObject::Trial(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  const std::shared_ptr<const TraceTrial> trial = reader_->signals().trial();
  return trial ? DescribeTrial(env, *trial) : env.Undefined();
}

// Blocks until signals are traced, or until it is clear that they will not be, but at most for this
// many ms.
Napi::Value ExitReaderObject::AwaitTrace(const Napi::CallbackInfo& info) {
  if (IsOurs(info) && running_) reader_->signals().Await(kNsPerMs * ToUint64(info[0]));
  return info.Env().Undefined();
}

// cgroupPath(id): undefined if unknown, null if currently unavailable.
Napi::Value ExitReaderObject::CgroupPath(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  bool is_shortage = false;
  const std::optional<std::string> path = reader_->cgroups().Find(ToUint64(info[0]), &is_shortage);
  if (path) return Napi::String::New(env, *path);
  return is_shortage ? env.Null() : env.Undefined();
}

// commandLine(number): { bytes, isCut }; undefined if it is not known any more.
Napi::Value ExitReaderObject::CommandLine(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  CommandLines* const lines = reader_->signals().command_lines();
  const std::optional<CommandLines::Text> text =
      lines == nullptr ? std::nullopt : lines->Find(ToUint64(info[0]));
  if (!text) return env.Undefined();
  Napi::Object found = Napi::Object::New(env);
  found.Set("bytes", Napi::Buffer<char>::Copy(env, text->bytes.data(), text->bytes.size()));
  found.Set("isCut", Napi::Boolean::New(env, text->is_cut));
  return found;
}

// Whether to deliver signals at once; otherwise they come before the exits of their processes.
Napi::Value ExitReaderObject::Listen(const Napi::CallbackInfo& info) {
  if (!IsOurs(info)) return info.Env().Undefined();
  reader_->signals().Listen(info[0].ToBoolean());
  // Earlier records have woken nobody.
  if (running_) reader_->Wake();
  return info.Env().Undefined();
}

Napi::Value ExitReaderObject::Stats(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  return DescribeStats(env, *reader_);
}

Napi::Value ExitReaderObject::Ref(const Napi::CallbackInfo& info) {
  if (IsOurs(info) && running_) wakeup_.Ref(info.Env());
  return info.Env().Undefined();
}

Napi::Value ExitReaderObject::Unref(const Napi::CallbackInfo& info) {
  if (IsOurs(info) && running_) wakeup_.Unref(info.Env());
  return info.Env().Undefined();
}

Napi::Value ExitReaderObject::Close(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOurs(info)) return env.Undefined();
  CloseRunning(env);
  return env.Undefined();
}

void ExitReaderObject::CloseRunning(Napi::Env env) {
  const bool was_running = running_;
  Shutdown();
  if (!was_running) return;
  napi_remove_env_cleanup_hook(env, OnEnvironmentEnd, this);
  batch_.Reset();
  signal_batch_.Reset();
  on_batch_.Reset();
  this->Napi::ObjectWrap<ExitReaderObject>::Unref();
}

void ExitReaderObject::OnEnvironmentEnd(void* self) {
  static_cast<ExitReaderObject*>(self)->Shutdown();
}

// Ends the thread, then releases what it calls. May be called repeatedly.
void ExitReaderObject::Shutdown() {
  // Before its descriptor is closed.
  if (doorbell_ != nullptr) std::exchange(doorbell_, nullptr)->Close();
  if (context_ != nullptr) napi_async_destroy(Env(), std::exchange(context_, nullptr));
  if (reader_) reader_->Stop();
  if (std::exchange(running_, false)) wakeup_.Abort();
}

}  // namespace exitwatch
