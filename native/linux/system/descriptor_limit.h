#ifndef EXITWATCH_LINUX_SYSTEM_DESCRIPTOR_LIMIT_H_
#define EXITWATCH_LINUX_SYSTEM_DESCRIPTOR_LIMIT_H_

namespace exitwatch {

// Whether this descriptor may be kept for long: the last 128 numbers below RLIMIT_NOFILE are left
// to the host program. Raises the soft limit to the hard one if necessary.
bool MayKeepDescriptor(int fd);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_DESCRIPTOR_LIMIT_H_
