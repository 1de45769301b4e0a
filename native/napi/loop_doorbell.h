#ifndef EXITWATCH_NAPI_LOOP_DOORBELL_H_
#define EXITWATCH_NAPI_LOOP_DOORBELL_H_

#include <napi.h>
#include <uv.h>

#include <functional>
#include <utility>

namespace exitwatch {

// Has the event loop of an environment call when a descriptor is readable. It does not keep the
// loop alive. Libuv frees a handle in its own time: so this is not deleted, but closed.
class LoopDoorbell {
 public:
  // Null where there is no loop to be had. `gone` is called at the end of the environment, unless
  // it was closed before.
  static LoopDoorbell* New(napi_env env, int fd, std::function<void()> ring,
                           std::function<void()> gone);

  void Start();
  void Stop();

  // At once there are no more calls; it deletes itself. Before the descriptor is closed.
  void Close();

 private:
  LoopDoorbell(std::function<void()> ring, std::function<void()> gone)
      : ring_(std::move(ring)), gone_(std::move(gone)) {}

  static void OnReadable(uv_poll_t* handle, int status, int events);
  static void OnEnvironmentEnd(napi_async_cleanup_hook_handle hook, void* self);

  std::function<void()> ring_;  // none: closed
  std::function<void()> gone_;
  uv_poll_t handle_;
  napi_async_cleanup_hook_handle hook_ = nullptr;
};

}  // namespace exitwatch

#endif  // EXITWATCH_NAPI_LOOP_DOORBELL_H_
