#ifndef EXITWATCH_NAPI_EXIT_READER_OBJECT_H_
#define EXITWATCH_NAPI_EXIT_READER_OBJECT_H_

#include <napi.h>

#include <atomic>
#include <memory>

#include "linux/exit_reader.h"

namespace exitwatch {

// What the readers of one environment share: its instance data.
using SharedByReaders = std::shared_ptr<ExitReader::Shared>;

// `new ExitReader(options)`: an exitwatch::ExitReader for JavaScript. Records cross in the `batch`
// of `start(batch, onBatch)`, an ArrayBuffer that is filled anew for every call of
// `onBatch(count)`.
//
// A started reader is kept alive, and keeps the event loop alive unless unref() was called, until
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
  Napi::Value Unwatch(const Napi::CallbackInfo& info);
  Napi::Value Filter(const Napi::CallbackInfo& info);
  Napi::Value Stats(const Napi::CallbackInfo& info);
  Napi::Value Ref(const Napi::CallbackInfo& info);
  Napi::Value Unref(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);

  bool IsOurs(const Napi::CallbackInfo& info);
  void WakeJavaScript();
  void Deliver(Napi::Env env, Napi::Function on_batch);
  void CloseRunning(Napi::Env env);
  void Shutdown();
  static void OnEnvironmentEnd(void* self);

  std::unique_ptr<ExitReader> reader_;
  // Only while running: whoever is not started can be forgotten with all that it refers to.
  Napi::Reference<Napi::ArrayBuffer> batch_;
  Record* records_ = nullptr;
  size_t capacity_ = 0;
  Wakeup wakeup_;
  bool running_ = false;
  std::atomic<bool> woken_{false};
};

}  // namespace exitwatch

#endif  // EXITWATCH_NAPI_EXIT_READER_OBJECT_H_
