#ifndef EXITWATCH_LINUX_SYSTEM_DESCRIPTOR_LIMIT_H_
#define EXITWATCH_LINUX_SYSTEM_DESCRIPTOR_LIMIT_H_

namespace exitwatch {

// Whether this descriptor may be kept for long: some numbers below RLIMIT_NOFILE are left to the
// host program. Raises the soft limit to the hard one where that is needed.
bool MayKeepDescriptor(int fd);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_DESCRIPTOR_LIMIT_H_
