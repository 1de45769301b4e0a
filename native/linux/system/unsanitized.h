#ifndef EXITWATCH_LINUX_SYSTEM_UNSANITIZED_H_
#define EXITWATCH_LINUX_SYSTEM_UNSANITIZED_H_

// For what runs in a process that has our memory, or in a thread that no library has made: what a
// sanitizer knows of the thread that has made it is not to be touched.
#if defined(__clang__)
#define EXITWATCH_UNSANITIZED __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define EXITWATCH_UNSANITIZED \
  __attribute__((no_sanitize_address, no_sanitize_undefined, no_sanitize_thread))
#endif

#endif  // EXITWATCH_LINUX_SYSTEM_UNSANITIZED_H_
