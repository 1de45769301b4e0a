#include "linux/reader/reader_epoll.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>

namespace exitwatch {

namespace {

constexpr int kEventsAtOnce = 4;

epoll_event EventOf(ReaderEpoll::Source source, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(source);
  return event;
}

}  // namespace

SystemError ReaderEpoll::Open() {
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return {Failure::kSystem, errno, "epoll_create1"};
  wake_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event_) return {Failure::kSystem, errno, "eventfd"};
  stop_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_event_) return {Failure::kSystem, errno, "eventfd"};
  return Add(wake_event_.Get(), Source::kWakeEvent, EPOLLIN);
}

void ReaderEpoll::Close() {
  epoll_.Reset();
  wake_event_.Reset();
  stop_event_.Reset();
}

SystemError ReaderEpoll::Add(int fd, Source source, uint32_t events) {
  epoll_event event = EventOf(source, events);
  if (epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return {Failure::kSystem, errno, "epoll_ctl"};
}

bool ReaderEpoll::SetEvents(int fd, Source source, uint32_t events) {
  epoll_event event = EventOf(source, events);
  return epoll_ctl(epoll_.Get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

ReaderEpoll::Wakeup ReaderEpoll::Wait(int timeout_ms, std::mutex& held) {
  epoll_event events[kEventsAtOnce];
  held.unlock();
  int count = epoll_wait(epoll_.Get(), events, kEventsAtOnce, timeout_ms);
  int error = errno;
  held.lock();
  Wakeup wakeup;
  // The thread takes no signals: EINTR means that the process was stopped and continued.
  wakeup.was_stopped = count < 0 && error == EINTR;
  if (wakeup.was_stopped) {
    count = epoll_wait(epoll_.Get(), events, kEventsAtOnce, 0);
    error = errno;
  }
  if (count < 0 && error != EINTR) wakeup.error = {Failure::kSystem, error, "epoll_wait"};
  for (int i = 0; i < count; i++) {
    const auto source = static_cast<Source>(events[i].data.u64);
    wakeup.has_pidfds |= source == Source::kPidfds;
    wakeup.has_socket |= source == Source::kStreamSocket;
    wakeup.has_ring |= source == Source::kRing;
    wakeup.is_urgent |= source != Source::kStreamSocket;
    if (source == Source::kWakeEvent) {
      eventfd_t value;
      eventfd_read(wake_event_.Get(), &value);
    }
  }
  return wakeup;
}

void ReaderEpoll::Wake() {
  if (wake_event_) eventfd_write(wake_event_.Get(), 1);
}

void ReaderEpoll::Stop() {
  is_stopping_ = true;
  if (stop_event_) eventfd_write(stop_event_.Get(), 1);
  Wake();
}

}  // namespace exitwatch
