#include "linux/system/exec_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace exitwatch {

namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int ExecProgram(const std::string& path, const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment) {
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  sigset_t before;
  sigset_t none;
  sigemptyset(&none);
  // execve(2) resets handlers, but neither the mask nor what is ignored. Node.js ignores SIGPIPE.
  struct sigaction ignored = {};
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &by_default, &ignored);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  // Node.js has them closed in what it runs, and may have made them non-blocking.
  for (int fd = 0; fd <= 2; fd++) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    fcntl(fd, F_SETFD, 0);
  }
  execve(path.c_str(), argv.data(), envp.data());
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  sigaction(SIGPIPE, &ignored, nullptr);
  return error;
}

}  // namespace exitwatch
