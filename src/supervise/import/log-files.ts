import type { RunLogs } from '../../supervisor/index.js';

/** Names an option that is left out, and why. */
type Leave = (option: string, reason: string) => void;

/** What was named is a terminal or a container's log. */
export const CONSOLE = Symbol('console');

/** A file; `null`: nowhere; `undefined`: it is not named. */
export type LogFile = string | typeof CONSOLE | null | undefined;

const NO_CONSOLE = 'output goes to files, which are rotated';

/** What another supervisor's name of a log file means. */
export function logFileOf(name: string, pathOf: (path: string) => string): LogFile {
  if (/^(null|none|off)$/i.test(name) || name === '/dev/null') return null;
  return /^\/(dev|proc)\//.test(name) ? CONSOLE : pathOf(name);
}

/** One file for both streams; without one there is the default file. */
export function logFile(file: LogFile, option: string, leave: Leave): { logs?: RunLogs } {
  if (typeof file === 'string') return { logs: { file } };
  if (file === null) return { logs: {} };
  if (file === CONSOLE) leave(option, `${NO_CONSOLE}: this one goes to the default file`);
  return {};
}

/** Both streams. What has no file of its own gets one beside that of the other. */
export function logFiles(
  out: LogFile,
  error: LogFile,
  options: { out: string; error: string },
  leave: Leave,
): RunLogs {
  return {
    ...fileOf('stdout', out, error, options.out, leave),
    ...fileOf('stderr', error, out, options.error, leave),
  };
}

function fileOf(
  stream: 'stdout' | 'stderr',
  file: LogFile,
  other: LogFile,
  option: string,
  leave: Leave,
): RunLogs {
  if (file === null) return {};
  if (typeof file === 'string') return { [stream]: file };
  const why = file === CONSOLE ? NO_CONSOLE : 'it is not named';
  if (typeof other === 'string') {
    const path = `${other}.${stream}`;
    leave(option, `${why}: it is ${path} here`);
    return { [stream]: path };
  }
  leave(option, `${why}: what is written there is discarded`);
  return {};
}
