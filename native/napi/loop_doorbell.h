#ifndef EXITWATCH_NAPI_LOOP_DOORBELL_H_
#define EXITWATCH_NAPI_LOOP_DOORBELL_H_

#include <napi.h>
#include <uv.h>

#include <functional>
#include <utility>

namespace exitwatch {

// Makes the event loop of an environment call `ring` when a descriptor is readable. Does not keep
// the loop alive. Never delete it, but close it: libuv releases the handle later.
class LoopDoorbell {
 public:
  // Null if it cannot be created. `gone` is called at the end of the environment, unless the
  // doorbell was closed before.
  static LoopDoorbell* New(napi_env env, int fd, std::function<void()> ring,
                           std::function<void()> gone);

  void Start();
  void Stop();

  // There are no more calls from now on; the object deletes itself. Call this before closing the
  // descriptor.
  void Close();

 private:
  LoopDoorbell(std::function<void()> ring, std::function<void()> gone)
      : ring_(std::move(ring)), gone_(std::move(gone)) {}

  static void OnReadable(uv_poll_t* handle, int status, int events);
  static void OnEnvironmentEnd(napi_async_cleanup_hook_handle hook, void* self);

  std::function<void()> ring_;  // empty once closed
  std::function<void()> gone_;
  uv_poll_t handle_;
  napi_async_cleanup_hook_handle hook_ = nullptr;
};

}  // namespace exitwatch

#endif  // EXITWATCH_NAPI_LOOP_DOORBELL_H_
