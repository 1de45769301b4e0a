#ifndef EXITWATCH_LINUX_SYSTEM_THREAD_H_
#define EXITWATCH_LINUX_SYSTEM_THREAD_H_

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <utility>

namespace exitwatch {

// One joinable thread that takes no signals: they are for the threads of the host program. Unlike
// std::thread, it reports failure by a number, since the addon is built without exceptions.
class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { Join(); }

  // Returns 0 or an errno. `name`, of at most 15 bytes, appears in ps and debuggers, and is that of
  // children that the thread makes. It must live as long as the thread.
  int Start(const char* name, std::function<void()> body) {
    name_ = name;
    body_ = std::move(body);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread_, &attributes, Run, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    started_ = error == 0;
    return error;
  }

  void Join() {
    if (std::exchange(started_, false)) pthread_join(thread_, nullptr);
  }

 private:
  static constexpr size_t kStackBytes = 256 * 1024;

  static void* Run(void* self) {
    auto* const thread = static_cast<Thread*>(self);
    pthread_setname_np(pthread_self(), thread->name_);
    thread->body_();
    return nullptr;
  }

  pthread_t thread_ = {};
  bool started_ = false;
  const char* name_ = nullptr;
  std::function<void()> body_;
};

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_THREAD_H_
