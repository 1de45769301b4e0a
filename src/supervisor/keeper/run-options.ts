import { isAbsolute, join } from 'node:path';

import { isObject } from '../../common/is-object.js';
import {
  checkBoolean,
  checkInteger,
  checkOptionNames,
  checkPath,
  invalidOption,
} from '../../common/options.js';

import type { Fields } from './message.js';
import { ownEnvironment } from './own-environment.js';
import { userFields } from './user-lookup.js';

/**
 * Where the output of a run goes. The run writes to a file by itself, so it never waits for anybody;
 * or to a log process, which rotates the file while the run goes on.
 *
 * @see [Supervisor](../../../docs/supervisor.md)
 */
export type RunLogs = {
  /** A file for its standard output; without it, that is discarded. */
  stdout?: string;
  /** A file for its standard error; may be the same. */
  stderr?: string;
  /** One file for both, which a log process of its own writes. Not together with the two above. */
  file?: string;
  /**
   * Rotated once the file has so many bytes: by the log process at once, otherwise before the next
   * start and by `rotateLog()`. Default: never.
   */
  maxBytes?: number;
  /** How many rotated files are kept: `FILE.1` is the newest. Default 5. */
  keep?: number;
};

/**
 * What a process is given: by a {@link Keeper} and by a {@link Supervisor}.
 *
 * @see [Supervisor](../../../docs/supervisor.md#start)
 */
export type ProcessOptions = {
  /** A path, or a name that is looked up in the PATH of the new environment. */
  command: string;
  args?: readonly string[];
  /**
   * All of its environment; default: that of your program at the start, without what systemd gives to it
   * alone.
   */
  env?: Readonly<Record<string, string | undefined>>;
  /**
   * A file of lines `NAME=VALUE`, as for `EnvironmentFile=` of systemd, which is read at each start and
   * stored nowhere; `env` has precedence.
   */
  envFile?: string;
  /** Default: that of your program; of a service: `'/'`. */
  cwd?: string;
  /** Default 0o022. */
  umask?: number;
  /**
   * How many files it may have open (`RLIMIT_NOFILE`). Default: what your program was given; but 1,024, which
   * the command may raise, if that is the highest that it may have, and 524,288 or more: then it is Node.js that has
   * raised it, and not somebody who has chosen it.
   */
  openFiles?: number;
  /** A name or a uid. Your program's groups are dropped before the command runs. */
  user?: string | number;
  /** A name or a gid; default: that of `user`. */
  group?: string | number;
  /** `false`: refuse to run it as root. Default `true`. */
  allowRoot?: boolean;
  /** A cgroup v2 folder, below which each run gets one of its own; `null`: none. */
  cgroup?: string | null;
  logs?: RunLogs;
  /**
   * Has its pid from before the command runs, and its identity in `PIDFILE.id`, also if your program dies
   * in the meantime. A supervisor removes it at the end; for a run of a keeper use `removePidfile()`.
   */
  pidfile?: string;
};

/** The names of {@link ProcessOptions}. @internal */
export const PROCESS_OPTIONS = [
  ...(['command', 'args', 'env', 'envFile', 'cwd', 'umask', 'openFiles', 'user', 'group'] as const),
  ...(['allowRoot', 'cgroup', 'logs', 'pidfile'] as const),
] satisfies (keyof ProcessOptions)[];

/**
 * What a {@link Keeper} starts.
 *
 * @see [Supervisor](../../../docs/supervisor.md#start)
 */
export type RunOptions = ProcessOptions & {
  /**
   * Names this run for good: 1 to 100 of the characters A-Z, a-z, 0-9 and `._@-`, the first one no dot.
   * An id starts at most once.
   */
  id: string;
  /** Gives it `NOTIFY_SOCKET`, as sd_notify(3) describes. */
  notify?: boolean;
};

const NAMES = ['id', 'notify', ...PROCESS_OPTIONS] as const satisfies (keyof RunOptions)[];

/** The highest that fs.nr_open of sysctl(8) can be. */
const MOST_OPEN_FILES = 2 ** 31 - 64;

const ID = /^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}$/;

/**
 * The options as a request.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`; `ERR_EXITWATCH_SYSTEM` if no user can be looked up
 */
export function toRequest(options: RunOptions, cgroupBase: string | null): Fields {
  checkOptionNames(options, NAMES);
  const { id, command, args = [], env = ownEnvironment(), umask = 0o022 } = options;
  const { cwd = process.cwd(), allowRoot = true, notify = false, openFiles } = options;
  checkRunId(id);
  if (typeof command !== 'string' || command === '')
    throw invalidOption('command must be a path or a name');
  if (!Array.isArray(args) || !args.every((each) => typeof each === 'string')) {
    throw invalidOption('args must be an array of strings');
  }
  const fields: [string, string][] = [
    ['op', 'start'],
    ['run', id],
    ['file', command],
    ['arg', command],
    ...args.map((each): [string, string] => ['arg', each]),
    ...environmentFields(env),
    ['cwd', checkAbsolute('cwd', cwd) ?? '/'],
    ['umask', String(checkInteger('umask', umask, 0, 0o777))],
    ...userFields(options),
    ...logFields(options.logs, id),
  ];
  for (const name of ['envFile', 'pidfile'] as const) {
    const path = checkAbsolute(name, options[name]);
    if (path !== undefined) fields.push([name, path]);
  }
  if (openFiles !== undefined) {
    fields.push(['openFiles', String(checkInteger('openFiles', openFiles, 1, MOST_OPEN_FILES))]);
  }
  if (!checkBoolean('allowRoot', allowRoot)) fields.push(['noRoot', '1']);
  if (checkBoolean('notify', notify)) fields.push(['notify', '1']);
  const { cgroup = cgroupBase } = options;
  if (cgroup !== null) fields.push(['cgroup', join(checkAbsolute('cgroup', cgroup) ?? '', id)]);
  return fields;
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkRunId(id: unknown): asserts id is string {
  if (typeof id === 'string' && ID.test(id)) return;
  throw invalidOption(`id must have 1 to 100 of the characters A-Z, a-z, 0-9 and ._@-`);
}

function environmentFields(env: unknown): [string, string][] {
  if (typeof env !== 'object' || env === null || Array.isArray(env)) {
    throw invalidOption('env must be an object');
  }
  return Object.entries(env as Record<string, unknown>).flatMap(([name, value]) => {
    if (value === undefined) return [];
    if (typeof value !== 'string') throw invalidOption(`env.${name} must be a string`);
    if (name === '' || name.includes('=')) {
      throw invalidOption(`env cannot have a variable named ${JSON.stringify(name)}`);
    }
    return [['env', `${name}=${value}`] as [string, string]];
  });
}

/** Paths that the keeper opens: it has another working directory, and its journal is a text file. */
function checkAbsolute(name: string, value: unknown): string | undefined {
  const path = checkPath(name, value);
  if (path === undefined) return undefined;
  if (!isAbsolute(path)) throw invalidOption(`${name} must be an absolute path`);
  if (/[\t\n\0]/.test(path) || path.length >= 4000) {
    throw invalidOption(
      `${name} must not contain a tab, a line feed or a NUL, nor 4,000 characters`,
    );
  }
  return path;
}

function logFields(logs: unknown, id: string): [string, string][] {
  if (logs === undefined) return [];
  if (!isObject(logs)) throw invalidOption('logs must be an object');
  const given = checkOptionNames(logs, ['stdout', 'stderr', 'file', 'maxBytes', 'keep']);
  const { maxBytes = 0, keep = 5 } = given;
  const stdout = checkAbsolute('logs.stdout', given.stdout);
  const stderr = checkAbsolute('logs.stderr', given.stderr);
  const file = checkAbsolute('logs.file', given.file);
  const fields: [string, string][] = [];
  if (file !== undefined) {
    if (stdout !== undefined || stderr !== undefined) {
      throw invalidOption('logs.file is for both: leave out logs.stdout and logs.stderr');
    }
    // Older keepers ask where the FIFO shall be.
    fields.push(['fifo', `${file}.${id}.fifo`], ['logFile', file]);
  }
  if (stdout !== undefined) fields.push(['out', stdout]);
  if (stderr !== undefined) fields.push(['err', stderr]);
  const most = checkInteger('logs.maxBytes', maxBytes, 0, Number.MAX_SAFE_INTEGER);
  if (most > 0) fields.push(['logMost', String(most)]);
  fields.push(['logKeep', String(checkInteger('logs.keep', keep, 0, 1000))]);
  return fields;
}
