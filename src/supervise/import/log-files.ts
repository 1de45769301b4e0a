import type { RunLogs } from '../../supervisor/index.js';

/** Names an option that is left out, and why. */
type Leave = (option: string, reason: string) => void;

/** A file; `null`: nowhere; `undefined`: where we put it. */
export type LogFile = string | null | undefined;

/** What another supervisor's name of a log file means. */
export function logFileOf(
  option: string,
  name: string,
  pathOf: (path: string) => string,
  leave: Leave,
): LogFile {
  if (/^(null|none|off)$/i.test(name) || name === '/dev/null') return null;
  if (!/^\/(dev|proc)\//.test(name)) return pathOf(name);
  leave(option, 'output goes to files, which are rotated: this one goes to the default file');
  return undefined;
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
  if (file !== undefined) return { [stream]: file };
  if (typeof other === 'string') {
    const path = `${other}.${stream}`;
    leave(option, `it is not named: it is ${path} here`);
    return { [stream]: path };
  }
  leave(option, 'it is not named: what is written there is discarded');
  return {};
}
