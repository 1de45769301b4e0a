#ifndef EXITWATCH_LINUX_SYSTEM_UNSANITIZED_H_
#define EXITWATCH_LINUX_SYSTEM_UNSANITIZED_H_

// For code in a process that shares our memory, or in a thread that no library created: it must not
// touch the sanitizer's state of the thread that created it.
#if defined(__clang__)
#define EXITWATCH_UNSANITIZED __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define EXITWATCH_UNSANITIZED \
  __attribute__((no_sanitize_address, no_sanitize_undefined, no_sanitize_thread))
#endif

#endif  // EXITWATCH_LINUX_SYSTEM_UNSANITIZED_H_
