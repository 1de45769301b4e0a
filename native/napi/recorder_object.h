#ifndef EXITWATCH_NAPI_RECORDER_OBJECT_H_
#define EXITWATCH_NAPI_RECORDER_OBJECT_H_

#include <napi.h>

#include <memory>

#include "linux/bpf/oom_victims.h"
#include "linux/recorder/recorder.h"
#include "linux/system/kernel_clock.h"

namespace exitwatch {

// `new Recorder()`: an exitwatch::Recorder for JavaScript, which has no thread: every call does
// what it has to do before it returns. See NativeRecorder in src/native/addon.ts.
class RecorderObject : public Napi::ObjectWrap<RecorderObject> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit RecorderObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value Create(const Napi::CallbackInfo& info);
  Napi::Value Trial(const Napi::CallbackInfo& info);
  Napi::Value Trust(const Napi::CallbackInfo& info);
  Napi::Value Inherit(const Napi::CallbackInfo& info);
  Napi::Value Pin(const Napi::CallbackInfo& info);
  Napi::Value Parts(const Napi::CallbackInfo& info);
  Napi::Value Adopt(const Napi::CallbackInfo& info);
  Napi::Value Open(const Napi::CallbackInfo& info);
  Napi::Value About(const Napi::CallbackInfo& info);
  Napi::Value Watch(const Napi::CallbackInfo& info);
  Napi::Value Forget(const Napi::CallbackInfo& info);
  Napi::Value Watched(const Napi::CallbackInfo& info);
  Napi::Value Retain(const Napi::CallbackInfo& info);
  Napi::Value Find(const Napi::CallbackInfo& info);
  Napi::Value ReadRing(const Napi::CallbackInfo& info);
  Napi::Value ReadSignals(const Napi::CallbackInfo& info);
  Napi::Value RingEnd(const Napi::CallbackInfo& info);
  Napi::Value Delivered(const Napi::CallbackInfo& info);
  Napi::Value SetDelivered(const Napi::CallbackInfo& info);
  Napi::Value CommitRing(const Napi::CallbackInfo& info);
  Napi::Value CommitSignals(const Napi::CallbackInfo& info);
  Napi::Value Used(const Napi::CallbackInfo& info);
  Napi::Value Losses(const Napi::CallbackInfo& info);
  Napi::Value AcknowledgeLoss(const Napi::CallbackInfo& info);
  Napi::Value Lease(const Napi::CallbackInfo& info);
  Napi::Value SetLease(const Napi::CallbackInfo& info);
  Napi::Value CgroupPath(const Napi::CallbackInfo& info);
  Napi::Value Programs(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);

  bool IsOpen(const Napi::CallbackInfo& info);
  Napi::Value Read(const Napi::CallbackInfo& info, bool is_ring);

  CgroupPaths cgroups_;
  KernelClock clock_;
  OomVictims victims_;
  std::unique_ptr<Recorder> recorder_;
  bool has_read_ = false;
};

}  // namespace exitwatch

#endif  // EXITWATCH_NAPI_RECORDER_OBJECT_H_
