// Included before everything else in the published binaries, so that what a new glibc and libstdc++
// build also runs with old ones (GLIBC_2.28, GLIBCXX_3.4.21).
#ifndef EXITWATCH_LINUX_SYSTEM_OLD_GLIBC_H_
#define EXITWATCH_LINUX_SYSTEM_OLD_GLIBC_H_

#include <features.h>

#if defined(__GLIBC__)

#if defined(__x86_64__)
#define EXITWATCH_FIRST_GLIBC "GLIBC_2.2.5"
#define EXITWATCH_SETNAME_GLIBC "GLIBC_2.12"
#elif defined(__aarch64__)
#define EXITWATCH_FIRST_GLIBC "GLIBC_2.17"
#define EXITWATCH_SETNAME_GLIBC "GLIBC_2.17"
#else
#error "which version of glibc was the first one here?"
#endif

// Since 2.32 and 2.34, these are in libc.so.6, each with a new version. Before, they are in
// libpthread.so.0, which Node.js has loaded.
__asm__(".symver pthread_attr_setstacksize,pthread_attr_setstacksize@" EXITWATCH_FIRST_GLIBC);
__asm__(".symver pthread_create,pthread_create@" EXITWATCH_FIRST_GLIBC);
__asm__(".symver pthread_join,pthread_join@" EXITWATCH_FIRST_GLIBC);
__asm__(".symver pthread_mutex_trylock,pthread_mutex_trylock@" EXITWATCH_FIRST_GLIBC);
__asm__(".symver pthread_setname_np,pthread_setname_np@" EXITWATCH_SETNAME_GLIBC);
__asm__(".symver pthread_sigmask,pthread_sigmask@" EXITWATCH_FIRST_GLIBC);

#if defined(__cplusplus)

// Reference counts would ask glibc 2.32 whether there is only one thread: there are several.
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
inline constexpr bool kExitwatchIsSingleThreaded = false;
#define __libc_single_threaded kExitwatchIsSingleThreaded
#endif

// GCC 11 calls this, and an old libstdc++ lacks it. The addon is built without exceptions.
namespace std {
__attribute__((weak, visibility("hidden"), noreturn)) void __throw_bad_array_new_length() {
  __builtin_abort();
}
}  // namespace std

#endif  // __cplusplus

#endif  // __GLIBC__

#endif  // EXITWATCH_LINUX_SYSTEM_OLD_GLIBC_H_
