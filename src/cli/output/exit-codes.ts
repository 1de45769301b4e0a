/** Wrong usage, as is customary. */
export const EXIT_USAGE = 2;

/** As in timeout(1). */
export const EXIT_TIMEOUT = 124;

/** exitwatch itself failed, as in timeout(1) and env(1); or the outcome of a process is unknown. */
export const EXIT_FAILED = 125;
export const EXIT_UNKNOWN = EXIT_FAILED;

/** As in a shell for a command that was not found. */
export const EXIT_NO_SUCH_PROCESS = 127;
