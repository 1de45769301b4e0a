#ifndef EXITWATCH_LINUX_SYSTEM_EXEC_PROGRAM_H_
#define EXITWATCH_LINUX_SYSTEM_EXEC_PROGRAM_H_

#include <string>
#include <vector>

namespace exitwatch {

// Becomes another program, in this process: with the signals as at the start of a process. It has
// descriptors 0, 1 and 2, and others that are not marked to be closed. Returns an errno if it
// cannot.
int ExecProgram(const std::string& path, const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment);

}  // namespace exitwatch

#endif  // EXITWATCH_LINUX_SYSTEM_EXEC_PROGRAM_H_
