import { dirname } from 'node:path';

import type { ConfiguredService, RunLogs } from '../../supervisor/index.js';
import type { SignalName } from '../../events/wait-status.js';

import { Import, type Imported } from './imported.js';
import { parseIni, type Section } from './ini.js';
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
  ['supervisord', 'see the options of "exitwatch supervise"'],
  ['supervisorctl', 'see "exitwatch service"'],
  ['unix_http_server', 'see --state-dir of "exitwatch supervise"'],
]);

/** What is always there, and says nothing about a program. */
const SILENT: readonly string[] = ['supervisorctl', 'unix_http_server', 'rpcinterface'];

/** Takes what can be honoured of a file of supervisord. @param path for `%(here)s` */
export function fromSupervisord(text: string, path: string): Imported {
  const imported = new Import();
  const levels = new Map<number, string[]>();
  for (const section of parseIni(text)) {
    const [kind = '', ...rest] = section.name.split(':');
    if (kind === 'program') {
      takeProgram(rest.join(':'), section, dirname(path), imported, levels);
    } else if (!SILENT.includes(kind)) {
      const reason = SECTIONS.get(kind) ?? 'there is nothing of that kind';
      imported.leave(null, `[${section.name}]`, reason);
    }
  }
  order(imported.services, levels);
  return imported.result;
}

/** Lower priorities start first: each level after the one before. */
function order(
  services: readonly ConfiguredService[],
  levels: ReadonlyMap<number, string[]>,
): void {
  const sorted = [...levels].sort(([one], [other]) => one - other);
  sorted.forEach(([, names], at) => {
    const before = sorted[at - 1]?.[1];
    if (before === undefined) return;
    for (const service of services) if (names.includes(service.name)) service.after = [...before];
  });
}

type Leave = (option: string, reason: string) => void;

function takeProgram(
  program: string,
  { options }: Section,
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
    const service = serviceOf(options, expand, leave);
    if (service === null) return;
    imported.add({ name, ...service });
    const priority = count(options, 'priority', DEFAULT.priority, leave);
    levels.set(priority, [...(levels.get(priority) ?? []), name]);
  }
}

type Expand = (option: string, text: string) => string;

/** `%(here)s`, `%(process_num)02d`, `%(ENV_HOME)s`, `%%`. */
function expander(known: Record<string, string>, leave: Leave): Expand {
  return (option, text) =>
    text.replace(
      /%(?:%|\((\w+)\)(0?\d*)([sd]))/g,
      (found, name: string | undefined, width: string) => {
        if (name === undefined) return '%';
        const value = name.startsWith('ENV_')
          ? process.env[name.slice('ENV_'.length)]
          : Object.hasOwn(known, name)
            ? known[name]
            : undefined;
        if (value === undefined) {
          leave(option, `${found} is not known`);
          return found;
        }
        return value.padStart(Number(width), width.startsWith('0') ? '0' : ' ');
      },
    );
}

function serviceOf(
  options: ReadonlyMap<string, string>,
  expand: Expand,
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
  const extraEnv = environmentOf(text('environment'), leave);
  return {
    ...{ command, args },
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(umask === undefined || !/^[0-7]+$/.test(umask) ? {} : { umask: parseInt(umask, 8) }),
    ...(Object.keys(extraEnv).length === 0 ? {} : { extraEnv }),
    ...restartOf(options, leave),
    backoff: {
      ...{ freeAttempts: 1, firstMs: 1000, healthyMs: startMs },
      giveUpAfter: count(options, 'startretries', DEFAULT.startretries, leave) + 1,
    },
    ...(startMs === 0 ? {} : { ready: { aliveMs: startMs } }),
    stop: {
      signal: signalOf(text('stopsignal'), leave),
      graceMs: count(options, 'stopwaitsecs', DEFAULT.stopwaitsecs, leave) * 1000,
    },
    ...logsOf(options, text, leave),
  };
}

function restartOf(
  options: ReadonlyMap<string, string>,
  leave: Leave,
): Pick<ConfiguredService, 'restart' | 'successExitCodes'> {
  const value = options.get('autorestart')?.toLowerCase() ?? 'unexpected';
  if (value !== 'unexpected') return { restart: isTrue(value) ? 'always' : 'never' };
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

/** `KEY="value",KEY2=value` */
function environmentOf(text: string | undefined, leave: Leave): Record<string, string> {
  const found: Record<string, string> = {};
  let rest = (text ?? '').trim();
  while (rest !== '') {
    const match =
      /^([^=\s,]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^,\s]*)\s*(?:,\s*|$)/.exec(rest);
    if (match === null) {
      leave('environment', `it cannot be read from ${JSON.stringify(rest.slice(0, 40))} on`);
      return found;
    }
    const [all, name = '', value = ''] = match;
    found[name] = shellWords(value)[0] ?? '';
    rest = rest.slice(all.length);
  }
  return found;
}

function logsOf(
  options: ReadonlyMap<string, string>,
  text: (option: string) => string | undefined,
  leave: Leave,
): { logs?: RunLogs } {
  const fileOf = (stream: 'stdout' | 'stderr') => {
    const value = text(`${stream}_logfile`) ?? 'AUTO';
    return { file: value, isAuto: /^auto$/i.test(value), isNone: /^none$/i.test(value) };
  };
  const out = fileOf('stdout');
  const error = fileOf('stderr');
  const bytes = bytesOf(options.get('stdout_logfile_maxbytes') ?? String(DEFAULT.bytes));
  const limits = {
    ...(bytes > 0 ? { maxBytes: bytes } : {}),
    keep: count(options, 'stdout_logfile_backups', DEFAULT.backups, leave),
  };
  const isBoth = isTrue(options.get('redirect_stderr') ?? 'false');
  if (isBoth) {
    if (out.isAuto) return {};
    return { logs: out.isNone ? {} : { file: out.file, ...limits } };
  }
  if (out.isAuto && error.isAuto) return {};
  if (out.isAuto || error.isAuto) {
    const which = out.isAuto ? 'stdout_logfile' : 'stderr_logfile';
    leave(which, 'a file of its own beside one that is named: name both');
  }
  return {
    logs: {
      ...(out.isAuto || out.isNone ? {} : { stdout: out.file }),
      ...(error.isAuto || error.isNone ? {} : { stderr: error.file }),
      ...limits,
    },
  };
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
