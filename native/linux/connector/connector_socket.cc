#include "linux/connector/connector_socket.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cstring>
#include <ctime>
#include <vector>

#include "core/bpf/exit_filter.h"
#include "linux/system/namespaces.h"

namespace exitwatch {

namespace {

constexpr int kAnswerMs = 60;

// How many times to subscribe. The kernel counts listeners in one number for the whole host, which
// other processes can drive below zero (6.6 to 6.18 at least). Every new subscription adds one.
constexpr int kSubscriptions = 8;

constexpr int kSoAttachBpf = 50;        // SO_ATTACH_BPF, Linux 3.19
constexpr int kSoMeminfo = 55;          // SO_MEMINFO, Linux 4.12
constexpr int kMeminfoWords = 9;        // SK_MEMINFO_VARS
constexpr int kMeminfoDrops = 8;        // SK_MEMINFO_DROPS
constexpr size_t kDatagramSpace = 512;  // far more than any event needs; longer ones are truncated

SystemError Failed(const char* syscall, Failure code = Failure::kSystem) {
  return {code, errno, syscall};
}

uint32_t RandomCookie() {
  uint32_t cookie = 0;
  if (getrandom(&cookie, sizeof(cookie), GRND_NONBLOCK) != sizeof(cookie)) {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    cookie = static_cast<uint32_t>(time.tv_nsec) ^ static_cast<uint32_t>(getpid());
  }
  return cookie;
}

int SetReceiveBuffer(int fd, int bytes) {
  // The kernel doubles the value to allow for its own overhead.
  const int half = bytes / 2;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof(half)) != 0) {
    // Without CAP_NET_ADMIN: as much as net.core.rmem_max allows.
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &half, sizeof(half));
  }
  int effective = 0;
  socklen_t size = sizeof(effective);
  getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &effective, &size);
  return effective;
}

}  // namespace

SystemError ConnectorSocket::Open(const Options& options) {
  SystemError error;
  for (int i = 0; i < kSubscriptions; i++) {
    error = OpenOnce(options);
    if (error.code != Failure::kSilent) return error;
  }
  return error;
}

SystemError ConnectorSocket::OpenOnce(const Options& options) {
  fd_.Reset(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR));
  if (!fd_) {
    return Failed("socket", errno == EPROTONOSUPPORT ? Failure::kNoConnector : Failure::kSystem);
  }

  // Before bind(), so that no unfiltered event gets into the buffer.
  if (!AttachFilter(options.filter_program)) return Failed("setsockopt");
  // Without this, an overflow makes the socket drop everything until it has been read empty.
  const int on = 1;
  if (setsockopt(fd_.Get(), SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on)) != 0) {
    return Failed("setsockopt");
  }
  receive_buffer_bytes_ = SetReceiveBuffer(fd_.Get(), options.receive_buffer_bytes);

  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  if (bind(fd_.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed("bind", errno == EPERM ? Failure::kNotPermitted : Failure::kSystem);
  }
  // Once connected to the kernel, the socket accepts unicast messages from nobody else.
  address.nl_groups = 0;
  if (connect(fd_.Get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed("connect");
  }
  return Subscribe(options);
}

bool ConnectorSocket::AttachFilter(int program) const {
  if (program >= 0) {
    return setsockopt(fd_.Get(), SOL_SOCKET, kSoAttachBpf, &program, sizeof(program)) == 0;
  }
  std::vector<sock_filter> filter = BuildExitFilter(static_cast<uint32_t>(getpid()));
  const sock_fprog instructions = {static_cast<unsigned short>(filter.size()), filter.data()};
  return setsockopt(fd_.Get(), SOL_SOCKET, SO_ATTACH_FILTER, &instructions, sizeof(instructions)) ==
         0;
}

SystemError ConnectorSocket::Subscribe(const Options& options) {
  const uint32_t cookie = RandomCookie();
  const uint32_t listen = PROC_CN_MCAST_LISTEN;
  if (SystemError error = Send(&listen, 1, cookie)) return error;
  // The kernel silently ignores subscriptions from other namespaces.
  if (!InInitialPidNamespace()) return {Failure::kForeignPid, 0, "send"};
  if (!InInitialUserNamespace()) return {Failure::kForeignUser, 0, "send"};
  if (SystemError error = AwaitAnswer(cookie + 1, options.stop_fd)) return error;
  // Since Linux 6.6 the message may have a mask of events, and the kernel no longer sends us
  // others. Before, it ignores the longer message. Neither answers.
  uint32_t events = kProcEventExit;
  if (options.filter_program < 0) events |= kProcEventExec | kProcEventCoredump | kProcEventFork;
  const uint32_t masked[] = {PROC_CN_MCAST_LISTEN, events};
  return Send(masked, 2, cookie + 1);
}

SystemError ConnectorSocket::Send(const uint32_t* payload, size_t words, uint32_t ack) const {
  const auto size = static_cast<uint16_t>(words * sizeof(uint32_t));
  nlmsghdr netlink = {};
  netlink.nlmsg_len = static_cast<uint32_t>(sizeof(nlmsghdr) + sizeof(cn_msg) + size);
  netlink.nlmsg_type = NLMSG_DONE;
  cn_msg connector = {};
  connector.id.idx = CN_IDX_PROC;
  connector.id.val = CN_VAL_PROC;
  connector.ack = ack;
  connector.len = size;
  uint8_t message[64];
  std::memcpy(message, &netlink, sizeof(netlink));
  std::memcpy(message + sizeof(netlink), &connector, sizeof(connector));
  std::memcpy(message + sizeof(netlink) + sizeof(connector), payload, size);
  const ssize_t sent = RetryOnEintr([&] { return send(fd_.Get(), message, netlink.nlmsg_len, 0); });
  if (sent >= 0) return {};
  return Failed("send", errno == ECONNREFUSED ? Failure::kForeignNetwork : Failure::kSystem);
}

SystemError ConnectorSocket::AwaitAnswer(uint32_t ack, int stop_fd) {
  timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (;;) {
    ProcEvent event;
    SystemError error;
    const Read read = ReadEvent(&event, &error);
    if (read == Read::kFailed) return error;
    // Every listener gets all answers, including those to others: our number identifies ours.
    if (read == Read::kEvent && event.what == kProcEventNone && event.ack == ack) {
      if (event.error == 0) return {};
      const int number = static_cast<int>(event.error);
      return {number == EPERM ? Failure::kNotPermitted : Failure::kSystem, number, "send"};
    }
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t waited_ms =
        (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1'000'000;
    if (waited_ms >= kAnswerMs) return {Failure::kSilent, 0, "recvmsg"};
    if (read != Read::kEmpty) continue;
    pollfd waiting[] = {{fd_.Get(), POLLIN, 0}, {stop_fd, POLLIN, 0}};
    RetryOnEintr([&] { return poll(waiting, 2, static_cast<int>(kAnswerMs - waited_ms)); });
    if (waiting[1].revents != 0) return {Failure::kSystem, ECANCELED, "poll"};
  }
}

ConnectorSocket::Read ConnectorSocket::ReadEvent(ProcEvent* event, SystemError* error) {
  uint8_t datagram[kDatagramSpace];
  sockaddr_nl sender = {};
  iovec space = {datagram, sizeof(datagram)};
  msghdr message = {};
  message.msg_name = &sender;
  message.msg_namelen = sizeof(sender);
  message.msg_iov = &space;
  message.msg_iovlen = 1;
  const ssize_t size = RetryOnEintr([&] { return recvmsg(fd_.Get(), &message, 0); });
  if (size < 0) {
    if (errno == EAGAIN) return Read::kEmpty;
    *error = Failed("recvmsg");
    return Read::kFailed;
  }
  // Any process with CAP_NET_ADMIN here can send to the group. Only the kernel sends from port 0.
  const bool from_kernel = message.msg_namelen == sizeof(sender) && sender.nl_pid == 0;
  const bool whole = (message.msg_flags & MSG_TRUNC) == 0;
  if (!from_kernel || !whole || !ParseProcEvent(datagram, static_cast<size_t>(size), event)) {
    return Read::kRejected;
  }
  return Read::kEvent;
}

uint32_t ConnectorSocket::Drops() const {
  uint32_t words[kMeminfoWords] = {};
  socklen_t size = sizeof(words);
  if (getsockopt(fd_.Get(), SOL_SOCKET, kSoMeminfo, words, &size) != 0) return 0;
  return words[kMeminfoDrops];
}

}  // namespace exitwatch
