#ifndef EXITWATCH_LINUX_SYSTEM_NAMESPACES_H_
#define EXITWATCH_LINUX_SYSTEM_NAMESPACES_H_

namespace exitwatch {

// Whether this process is in the host's own ("initial") namespace of a kind. These have had fixed
// inodes since Linux 3.8 (PROC_*_INIT_INO of <linux/proc_ns.h>, public since 6.17 in
// <linux/nsfs.h>). True if /proc does not show it.
bool InInitialPidNamespace();
bool InInitialUserNamespace();
bool InInitialCgroupNamespace();

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_NAMESPACES_H_
