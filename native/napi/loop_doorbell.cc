#include "napi/loop_doorbell.h"

#include <memory>
#include <utility>

namespace exitwatch {

LoopDoorbell* LoopDoorbell::New(napi_env env, int fd, std::function<void()> ring,
                                std::function<void()> gone) {
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) return nullptr;
  std::unique_ptr<LoopDoorbell> doorbell(new LoopDoorbell(std::move(ring), std::move(gone)));
  if (uv_poll_init(loop, &doorbell->handle_, fd) != 0) return nullptr;
  doorbell->handle_.data = doorbell.get();
  uv_unref(reinterpret_cast<uv_handle_t*>(&doorbell->handle_));
  // The loop must turn once more before the environment is gone, to close the handle.
  if (napi_add_async_cleanup_hook(env, OnEnvironmentEnd, doorbell.get(), &doorbell->hook_) !=
      napi_ok) {
    doorbell.release()->Close();
    return nullptr;
  }
  return doorbell.release();
}

void LoopDoorbell::Start() { uv_poll_start(&handle_, UV_READABLE, OnReadable); }

void LoopDoorbell::Stop() { uv_poll_stop(&handle_); }

void LoopDoorbell::Close() {
  ring_ = nullptr;
  gone_ = nullptr;
  auto* handle = reinterpret_cast<uv_handle_t*>(&handle_);
  if (uv_is_closing(handle)) return;
  uv_close(handle, [](uv_handle_t* closed) {
    const std::unique_ptr<LoopDoorbell> doorbell(static_cast<LoopDoorbell*>(closed->data));
    if (doorbell->hook_ != nullptr) napi_remove_async_cleanup_hook(doorbell->hook_);
  });
}

void LoopDoorbell::OnReadable(uv_poll_t* handle, int /*status*/, int /*events*/) {
  auto* self = static_cast<LoopDoorbell*>(handle->data);
  if (!self->ring_) return;
  // Copied, because the doorbell may be closed while it rings.
  const std::function<void()> ring = self->ring_;
  ring();
}

void LoopDoorbell::OnEnvironmentEnd(napi_async_cleanup_hook_handle /*hook*/, void* self) {
  auto* doorbell = static_cast<LoopDoorbell*>(self);
  if (doorbell->gone_) doorbell->gone_();
  doorbell->Close();
}

}  // namespace exitwatch
