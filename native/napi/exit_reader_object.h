#ifndef EXITWATCH_NAPI_EXIT_READER_OBJECT_H_
#define EXITWATCH_NAPI_EXIT_READER_OBJECT_H_

#include <napi.h>
#include <uv.h>

#include <atomic>
#include <memory>

#include "linux/reader/exit_reader.h"

namespace exitwatch {

class LoopDoorbell;

// Shared by the readers of one environment, as its instance data.
using SharedByReaders = std::shared_ptr<ExitReader::Shared>;

// `new ExitReader(options)`: an exitwatch::ExitReader for JavaScript. Records and signals cross in
// the ArrayBuffers of `start(batch, signals, onBatch)`, which are refilled for every call of
// `onBatch(records, signals)`. The signals that led to an exit come before it.
//
// A started reader stays alive, and keeps the event loop alive unless unref() was called, until
// close() or the end of the environment.
class ExitReaderObject : public Napi::ObjectWrap<ExitReaderObject> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit ExitReaderObject(const Napi::CallbackInfo& info);
  ~ExitReaderObject() override;

 private:
  static void CallJs(Napi::Env env, Napi::Function on_batch, ExitReaderObject* self, void* unused);
  using Wakeup = Napi::TypedThreadSafeFunction<ExitReaderObject, void, CallJs>;

  Napi::Value Start(const Napi::CallbackInfo& info);
  Napi::Value Watch(const Napi::CallbackInfo& info);
  Napi::Value WatchPid(const Napi::CallbackInfo& info);
  Napi::Value Unwatch(const Napi::CallbackInfo& info);
  Napi::Value Filter(const Napi::CallbackInfo& info);
  Napi::Value Trace(const Napi::CallbackInfo& info);
  Napi::Value Trial(const Napi::CallbackInfo& info);
  Napi::Value AwaitTrace(const Napi::CallbackInfo& info);
  Napi::Value CgroupPath(const Napi::CallbackInfo& info);
  Napi::Value CommandLine(const Napi::CallbackInfo& info);
  Napi::Value Listen(const Napi::CallbackInfo& info);
  Napi::Value Stats(const Napi::CallbackInfo& info);
  Napi::Value Ref(const Napi::CallbackInfo& info);
  Napi::Value Unref(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);

  bool IsOurs(const Napi::CallbackInfo& info);
  void WakeJavaScript();
  void TakeStream(Napi::Env env, Napi::Function on_batch);
  void OnDoorbell();
  void Deliver(Napi::Env env, Napi::Function on_batch);
  size_t TakeRecords(size_t most);
  bool Call(Napi::Env env, Napi::Function on_batch, size_t records, size_t signals);
  void CloseRunning(Napi::Env env);
  void Shutdown();
  static void OnEnvironmentEnd(void* self);

  std::unique_ptr<ExitReader> reader_;
  // Set only while running: a reader that was not started can be collected with all that it refers
  // to.
  Napi::Reference<Napi::ArrayBuffer> batch_;
  Napi::Reference<Napi::ArrayBuffer> signal_batch_;
  uint8_t* records_ = nullptr;  // kRecordBytes each
  size_t capacity_ = 0;
  SignalRecord* signals_ = nullptr;
  size_t signal_capacity_ = 0;
  Wakeup wakeup_;
  // Set once the loop has read the stream.
  Napi::FunctionReference on_batch_;
  napi_async_context context_ = nullptr;
  LoopDoorbell* doorbell_ = nullptr;
  bool running_ = false;
  std::atomic<bool> woken_{false};
};

}  // namespace exitwatch

#endif  // EXITWATCH_NAPI_EXIT_READER_OBJECT_H_
