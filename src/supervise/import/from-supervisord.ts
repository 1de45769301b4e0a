import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';

import type { ConfiguredService, RunLogs } from '../../supervisor/index.js';
import type { SignalName } from '../../events/wait-status.js';

import { Import, type Imported } from './imported.js';
import { parseIni, type Section } from './ini.js';
import { CONSOLE, logFile, logFileOf, logFiles } from './log-files.js';
import { environmentOf, type Expand, expander, type Leave } from './supervisord-values.js';
import { shellWords } from './words.js';

/** Its defaults. */
const DEFAULT = {
  ...{ startsecs: 1, startretries: 3, stopwaitsecs: 10, priority: 999 },
  ...{ bytes: 50 * 1024 * 1024, backups: 10 },
};

const TAKEN: readonly string[] = [
  ...['command', 'process_name', 'numprocs', 'numprocs_start', 'priority', 'startsecs'],
  ...['startretries', 'autorestart', 'exitcodes', 'stopsignal', 'stopwaitsecs', 'stopasgroup'],
  ...['killasgroup', 'user', 'redirect_stderr', 'environment', 'directory', 'umask'],
  ...['stdout_logfile', 'stdout_logfile_maxbytes', 'stdout_logfile_backups'],
  ...['stderr_logfile', 'stderr_logfile_maxbytes', 'stderr_logfile_backups'],
];

const REASONS = new Map([
  ['autostart', 'what is described is started; stop it with "exitwatch service stop"'],
  ['stdout_syslog', 'output goes to files'],
  ['stderr_syslog', 'output goes to files'],
  ['stdout_events_enabled', 'there are no event listeners: run "exitwatch supervise --json"'],
  ['stderr_events_enabled', 'there are no event listeners: run "exitwatch supervise --json"'],
  ['stdout_capture_maxbytes', 'there are no event listeners: run "exitwatch supervise --json"'],
  ['stderr_capture_maxbytes', 'there are no event listeners: run "exitwatch supervise --json"'],
]);

const SECTIONS = new Map([
  ['eventlistener', 'there are no event listeners: run "exitwatch supervise --json"'],
  ['fcgi-program', 'sockets are not passed on'],
  ['group', 'services have no groups'],
  ['include', 'import those files, too'],
  ['inet_http_server', 'there is only a unix socket'],
  ['rpcinterface', 'there is no XML-RPC'],
  ['supervisorctl', 'see "exitwatch service"'],
  ['unix_http_server', 'see --state-dir of "exitwatch supervise"'],
]);

/** What is always there, and says nothing about a program. */
const SILENT: readonly string[] = ['supervisorctl', 'unix_http_server', 'rpcinterface'];

/** Takes what can be honoured of a file of supervisord. @param path for `%(here)s` */
export function fromSupervisord(text: string, path: string): Imported {
  const imported = new Import();
  const levels = new Map<number, string[]>();
  const sections = parseIni(text);
  const common = commonOf(sections, imported);
  for (const section of sections) {
    const [kind = '', ...rest] = section.name.split(':');
    if (kind === 'supervisord') continue;
    if (kind === 'program') {
      const options = new Map([...common, ...section.options]);
      const name = rest.join(':');
      const program = { name, options, common: common.get('environment') };
      takeProgram(program, dirname(path), imported, levels);
    } else if (!SILENT.includes(kind)) {
      const reason = SECTIONS.get(kind) ?? 'there is nothing of that kind';
      imported.leave(null, `[${section.name}]`, reason);
    }
  }
  order(imported, levels);
  return imported.result;
}

/** What the programs have of their supervisor, unless they say otherwise. */
const COMMON: readonly string[] = ['user', 'directory', 'umask', 'environment'];

function commonOf(sections: readonly Section[], imported: Import): Map<string, string> {
  const common = new Map<string, string>();
  for (const { name, options } of sections) {
    if (name !== 'supervisord') continue;
    for (const [option, value] of options) {
      if (COMMON.includes(option)) common.set(option, value);
      else {
        const reason = 'see the options of "exitwatch supervise"';
        imported.leave(null, `[supervisord] ${option}`, reason);
      }
    }
  }
  return common;
}

/** Lower priorities start first: each level after the one before. */
function order(imported: Import, levels: ReadonlyMap<number, string[]>): void {
  const sorted = [...levels].sort(([one], [other]) => one - other);
  sorted.forEach(([, names], at) => {
    const before = sorted[at - 1]?.[1];
    if (before === undefined) return;
    for (const service of imported.services) {
      if (!names.includes(service.name)) continue;
      service.after = [...before];
      imported.leave(service.name, 'priority', 'it is "after" here: it waits until they are ready');
    }
  });
}

interface Program {
  name: string;
  options: ReadonlyMap<string, string>;
  /** The environment of all programs. */
  common: string | undefined;
}

function takeProgram(
  { name: program, options, common }: Program,
  here: string,
  imported: Import,
  levels: Map<number, string[]>,
): void {
  const leave: Leave = (option, reason) => {
    imported.leave(program, option, reason);
  };
  for (const [option, value] of options) {
    if (TAKEN.includes(option) || (option === 'autostart' && isTrue(value))) continue;
    if (/_(syslog|events_enabled)$/.test(option) && !isTrue(value)) continue;
    if (option.endsWith('_capture_maxbytes') && bytesOf(value) === 0) continue;
    leave(option, REASONS.get(option) ?? 'there is nothing of that kind');
  }
  if (!options.has('command')) {
    leave('command', 'without one there is nothing to start');
    return;
  }
  const number = count(options, 'numprocs', 1, leave);
  const first = count(options, 'numprocs_start', 0, leave);
  for (let at = first; at < first + number; at++) {
    const expand = expander({ here, program_name: program, process_num: String(at) }, leave);
    const given = options.get('process_name');
    const wanted = given === undefined ? program : expand('process_name', given);
    const isSame = number > 1 && given === undefined;
    const name = imported.nameFor(isSame ? `${program}_${at}` : wanted);
    const service = serviceOf({ options, common, here, expand }, leave);
    if (service === null) return;
    imported.add({ name, ...service });
    const priority = count(options, 'priority', DEFAULT.priority, leave);
    levels.set(priority, [...(levels.get(priority) ?? []), name]);
  }
}

function serviceOf(
  {
    options,
    common,
    here,
    expand,
  }: Omit<Program, 'name'> & {
    here: string;
    expand: Expand;
  },
  leave: Leave,
): Omit<ConfiguredService, 'name'> | null {
  const text = (option: string) => {
    const value = options.get(option);
    return value === undefined || value === '' ? undefined : expand(option, value);
  };
  let words: string[];
  try {
    words = shellWords(text('command') ?? '');
  } catch (error) {
    leave('command', (error as Error).message);
    return null;
  }
  const [command, ...args] = words;
  if (command === undefined) return null;
  const cwd = text('directory');
  const user = text('user');
  const umask = text('umask');
  const startMs = count(options, 'startsecs', DEFAULT.startsecs, leave) * 1000;
  const extraEnv = {
    ...environmentOf(common === undefined ? undefined : expand('environment', common), leave),
    ...environmentOf(text('environment'), leave),
  };
  const pathOf = (path: string) => resolve(here, path.replace(/^~(?=\/|$)/, homedir()));
  if (cwd === undefined && words.some((word) => /^\.{1,2}\//.test(word))) {
    leave('directory', 'it is not named: the program runs in the folder of the configuration');
  }
  return {
    ...{ command, args },
    ...(cwd === undefined ? {} : { cwd: pathOf(cwd) }),
    ...(user === undefined ? {} : { user }),
    ...(umask === undefined || !/^[0-7]+$/.test(umask) ? {} : { umask: parseInt(umask, 8) }),
    ...(Object.keys(extraEnv).length === 0 ? {} : { extraEnv }),
    ...restartOf(options, leave),
    ...startsOf(startMs, count(options, 'startretries', DEFAULT.startretries, leave)),
    stop: {
      signal: signalOf(text('stopsignal'), leave),
      ...(isTrue(options.get('stopasgroup') ?? 'false') ? {} : { ask: 'main' as const }),
      graceMs: count(options, 'stopwaitsecs', DEFAULT.stopwaitsecs, leave) * 1000,
    },
    ...logsOf(options, text, pathOf, leave),
  };
}

/** With `startsecs=0` no start ever fails there: it is tried again without a limit. */
function startsOf(startMs: number, retries: number): Pick<ConfiguredService, 'backoff' | 'ready'> {
  const backoff = { freeAttempts: 1, firstMs: 1000 };
  if (startMs === 0) return { backoff: { ...backoff, healthyMs: 1000 } };
  return {
    backoff: { ...backoff, healthyMs: startMs, giveUpAfter: retries + 1 },
    ready: { aliveMs: startMs },
  };
}

function restartOf(
  options: ReadonlyMap<string, string>,
  leave: Leave,
): Pick<ConfiguredService, 'restart' | 'successExitCodes'> {
  const value = options.get('autorestart')?.toLowerCase() ?? 'unexpected';
  if (isTrue(value)) return { restart: 'always' };
  if (/^(false|no|off|0)$/.test(value)) return { restart: 'never' };
  if (value !== 'unexpected')
    leave('autorestart', `${JSON.stringify(value)} is none of its values`);
  const codes = (options.get('exitcodes') ?? '0').split(',').map((each) => Number(each.trim()));
  if (codes.every((code) => Number.isInteger(code) && code >= 0 && code <= 255)) {
    return { restart: 'on-failure', successExitCodes: codes };
  }
  leave('exitcodes', 'they must be numbers from 0 to 255');
  return { restart: 'on-failure' };
}

function signalOf(value: string | undefined, leave: Leave): SignalName {
  const name = `SIG${(value ?? 'TERM').toUpperCase().replace(/^SIG/, '')}`;
  if (/^SIG(TERM|HUP|INT|QUIT|KILL|USR1|USR2)$/.test(name)) return name as SignalName;
  leave('stopsignal', `${JSON.stringify(value)} is none of its signals; SIGTERM is sent`);
  return 'SIGTERM';
}

function logsOf(
  options: ReadonlyMap<string, string>,
  text: (option: string) => string | undefined,
  pathOf: (path: string) => string,
  leave: Leave,
): { logs?: RunLogs } {
  const target = (option: string) => {
    const name = text(option) ?? 'AUTO';
    return /^auto$/i.test(name) ? undefined : logFileOf(name, pathOf);
  };
  const bytes = bytesOf(options.get('stdout_logfile_maxbytes') ?? String(DEFAULT.bytes));
  const limits = {
    ...(bytes > 0 ? { maxBytes: bytes } : {}),
    keep: count(options, 'stdout_logfile_backups', DEFAULT.backups, leave),
  };
  const out = target('stdout_logfile');
  if (isTrue(options.get('redirect_stderr') ?? 'false')) {
    const { logs } = logFile(out, 'stdout_logfile', leave);
    if (logs === undefined) return {};
    return { logs: logs.file === undefined ? logs : { ...logs, ...limits } };
  }
  const error = target('stderr_logfile');
  for (const limit of ['maxbytes', 'backups']) {
    const own = options.get(`stderr_logfile_${limit}`);
    if (own !== undefined && own !== options.get(`stdout_logfile_${limit}`)) {
      leave(`stderr_logfile_${limit}`, 'both files have the limits of standard output');
    }
  }
  if (typeof out !== 'string' && out !== null && typeof error !== 'string' && error !== null) {
    return logFile(out ?? error, out === CONSOLE ? 'stdout_logfile' : 'stderr_logfile', leave);
  }
  const names = { out: 'stdout_logfile', error: 'stderr_logfile' };
  return { logs: { ...logFiles(out, error, names, leave), ...limits } };
}

function isTrue(value: string): boolean {
  return /^(true|yes|on|1)$/i.test(value.trim());
}

function count(
  options: ReadonlyMap<string, string>,
  option: string,
  otherwise: number,
  leave: Leave,
): number {
  const value = options.get(option);
  if (value === undefined) return otherwise;
  if (/^\d{1,6}$/.test(value)) return Number(value);
  leave(option, `${JSON.stringify(value)} is no number`);
  return otherwise;
}

/** `50MB` */
function bytesOf(value: string): number {
  const [, amount = '0', unit = ''] = /^(\d{1,12})\s*(KB|MB|GB)?$/i.exec(value.trim()) ?? [];
  const scale = { '': 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }[unit.toUpperCase()] ?? 1;
  return Number(amount) * scale;
}
