/** Wrong usage, as everywhere. */
export const EXIT_USAGE = 2;

/** As timeout(1) has it. */
export const EXIT_TIMEOUT = 124;

/** exitwatch itself failed, as with timeout(1) and env(1); or nobody knows how a process ended. */
export const EXIT_FAILED = 125;
export const EXIT_UNKNOWN = EXIT_FAILED;

/** As a shell has it for a command that is not found. */
export const EXIT_NO_SUCH_PROCESS = 127;
