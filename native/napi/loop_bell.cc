#include "napi/loop_bell.h"

#include <memory>
#include <utility>

namespace exitwatch {

LoopBell* LoopBell::New(napi_env env, int fd, std::function<void()> ring,
                        std::function<void()> gone) {
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) return nullptr;
  std::unique_ptr<LoopBell> bell(new LoopBell(std::move(ring), std::move(gone)));
  if (uv_poll_init(loop, &bell->handle_, fd) != 0) return nullptr;
  bell->handle_.data = bell.get();
  uv_unref(reinterpret_cast<uv_handle_t*>(&bell->handle_));
  // The loop has to turn once more before the environment is gone, for the handle to be closed.
  if (napi_add_async_cleanup_hook(env, OnEnvironmentEnd, bell.get(), &bell->hook_) != napi_ok) {
    bell.release()->Close();
    return nullptr;
  }
  return bell.release();
}

void LoopBell::Start() { uv_poll_start(&handle_, UV_READABLE, OnReadable); }

void LoopBell::Stop() { uv_poll_stop(&handle_); }

void LoopBell::Close() {
  ring_ = nullptr;
  gone_ = nullptr;
  auto* handle = reinterpret_cast<uv_handle_t*>(&handle_);
  if (uv_is_closing(handle)) return;
  uv_close(handle, [](uv_handle_t* closed) {
    const std::unique_ptr<LoopBell> bell(static_cast<LoopBell*>(closed->data));
    if (bell->hook_ != nullptr) napi_remove_async_cleanup_hook(bell->hook_);
  });
}

void LoopBell::OnReadable(uv_poll_t* handle, int /*status*/, int /*events*/) {
  auto* self = static_cast<LoopBell*>(handle->data);
  if (!self->ring_) return;
  // It may be closed while it rings.
  const std::function<void()> ring = self->ring_;
  ring();
}

void LoopBell::OnEnvironmentEnd(napi_async_cleanup_hook_handle /*hook*/, void* self) {
  auto* bell = static_cast<LoopBell*>(self);
  if (bell->gone_) bell->gone_();
  bell->Close();
}

}  // namespace exitwatch
