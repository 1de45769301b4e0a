// senders: kills processes, each by another process that is gone at once.
//
// Reads commands from stdin:
//   spawn N   starts N targets, some with another user, and prints `target PID UID` for each
//   kill      kills them, each in the next way of WAYS, and prints `killed PID WAY SENDER UID NAME
//   PARENT` for each when all are dead
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 4096
#define NOBODY 65534

enum way { SHELL, COMMAND, BRIEF, PIDFD, OTHER_USER, CONTAINER, WAYS };
static const char* const names[] = {"shell", "command", "brief", "pidfd", "user", "container"};

struct target {
  pid_t pid;    // as seen from here
  pid_t init;   // the first process of its pid namespace; 0: this namespace
  int control;  // a socket to init
  enum way way;
};

static struct target targets[MOST];

static void die(const char* what) {
  perror(what);
  exit(1);
}

static void wait_for_death(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "target");
  for (;;) pause();
}

static void kill_at_once(pid_t pid, int signal, int by_pidfd) {
  prctl(PR_SET_NAME, "sender");
  if (by_pidfd) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
  } else {
    kill(pid, signal);
  }
  _exit(0);
}

// Tells the process at the other end this process's pid in its own namespace.
static void introduce(int socket) {
  char byte = 0;
  if (write(socket, &byte, 1) != 1) _exit(1);
}

static pid_t introduced(int socket) {
  char byte, control[CMSG_SPACE(sizeof(struct ucred))];
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  if (recvmsg(socket, &message, 0) != 1) die("recvmsg");
  struct ucred credentials;
  memcpy(&credentials, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(credentials));
  return credentials.pid;
}

// The first process of a pid namespace. Starts a target, and the target's killer on request.
static int run_container(void* argument) {
  int socket = *(int*)argument;
  prctl(PR_SET_NAME, "init");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pid_t target = fork();
  if (target == 0) {
    introduce(socket);
    wait_for_death();
  }
  char byte;
  if (read(socket, &byte, 1) != 1) _exit(1);
  pid_t sender = fork();
  if (sender == 0) {
    introduce(socket);
    kill_at_once(target, SIGTERM, 0);
  }
  while (wait(NULL) > 0) {
  }
  _exit(0);
}

static void spawn_one(struct target* target, enum way way) {
  *target = (struct target){.way = way};
  if (way == CONTAINER) {
    static char stack[65536];
    int sockets[2], on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) die("socketpair");
    if (setsockopt(sockets[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) die("SO_PASSCRED");
    target->init = clone(run_container, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, &sockets[1]);
    if (target->init < 0) die("clone");
    close(sockets[1]);
    target->control = sockets[0];
    target->pid = introduced(sockets[0]);
  } else {
    target->pid = fork();
    if (target->pid < 0) die("fork");
    if (target->pid == 0) {
      if (way == OTHER_USER && setuid(NOBODY) != 0) die("setuid");
      wait_for_death();
    }
  }
  printf("target %d %d\n", target->pid, way == OTHER_USER ? NOBODY : 0);
}

static void kill_one(struct target* target) {
  pid_t parent = getpid();
  const char* name = "sender";
  pid_t sender;
  if (target->way == CONTAINER) {
    char byte = 0;
    if (write(target->control, &byte, 1) != 1) die("write");
    sender = introduced(target->control);
    parent = target->init;
    waitpid(target->init, NULL, 0);
    close(target->control);
  } else {
    sender = fork();
    if (sender < 0) die("fork");
    if (sender == 0) {
      char pid[16], script[32];
      snprintf(pid, sizeof(pid), "%d", target->pid);
      snprintf(script, sizeof(script), "kill -TERM %d", target->pid);
      if (target->way == SHELL) execl("/bin/sh", "sh", "-c", script, NULL);
      if (target->way == COMMAND) execl("/bin/kill", "kill", "-KILL", pid, NULL);
      if (target->way == OTHER_USER && setuid(NOBODY) != 0) die("setuid");
      kill_at_once(target->pid, SIGTERM, target->way == PIDFD);
    }
    if (target->way == SHELL) name = "sh";
    if (target->way == COMMAND) name = "kill";
    waitpid(sender, NULL, 0);
    waitpid(target->pid, NULL, 0);
  }
  printf("killed %d %s %d %d %s %d\n", target->pid, names[target->way], sender,
         target->way == OTHER_USER ? NOBODY : 0, name, parent);
}

int main(void) {
  char line[64];
  int count = 0;
  while (fgets(line, sizeof(line), stdin)) {
    int wanted;
    if (sscanf(line, "spawn %d", &wanted) == 1 && wanted <= MOST) {
      count = wanted;
      for (int i = 0; i < count; i++) spawn_one(&targets[i], (enum way)(i % WAYS));
    } else {
      for (int i = 0; i < count; i++) kill_one(&targets[i]);
    }
    fflush(stdout);
  }
  return 0;
}
