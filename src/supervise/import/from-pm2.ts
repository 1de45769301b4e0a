import { homedir } from 'node:os';
import { basename, extname, parse, resolve } from 'node:path';

import { isObject } from '../../common/is-object.js';
import type { ConfiguredService, RunLogs } from '../../supervisor/index.js';

import { Import, type Imported } from './imported.js';
import { CONSOLE, type LogFile, logFile, logFileOf, logFiles } from './log-files.js';
import { type App, commandOf, type Leave, textFrom, textOf } from './pm2-command.js';

/** Its defaults. */
const LEAST_UPTIME_MS = 1000;
const MOST_DELAY_MS = 15_000;

/** What is taken. Those with a value of their own are handled below. */
const TAKEN: readonly string[] = [
  ...['name', 'script', 'args', 'cwd', 'interpreter', 'exec_interpreter', 'interpreter_args'],
  ...['interpreterArgs', 'node_args', 'env', 'autorestart', 'stop_exit_codes', 'max_restarts'],
  ...['min_uptime', 'restart_delay', 'exp_backoff_restart_delay', 'kill_timeout', 'pid_file'],
  ...['pid', 'out_file', 'output', 'out', 'error_file', 'error', 'err_file', 'log_file', 'log'],
  ...['uid', 'user', 'gid', 'instances', 'exec_mode', 'instance_var', 'combine_logs'],
  ...['merge_logs', 'source_map_support'],
];

/** Values that ask for nothing that we do not do anyway. */
const HARMLESS: Readonly<Record<string, readonly unknown[]>> = {
  ...{
    watch: [false],
    treekill: [true],
    wait_ready: [false],
    time: [false],
    vizion: [false, true],
  },
  ...{ pmx: [false, true], automation: [false, true], force: [false, true], disable_logs: [false] },
  ...{ shutdown_with_message: [false], autostart: [true], windowsHide: [false, true] },
};

const REASONS: Readonly<Record<string, string>> = {
  watch: 'files are not watched; restart it when it is deployed',
  ignore_watch: 'files are not watched',
  watch_options: 'files are not watched',
  watch_delay: 'files are not watched',
  max_memory_restart: 'put it into a cgroup with a limit; an OOM kill is told, and starts it again',
  cron_restart: 'run "exitwatch service restart" by a timer of systemd or cron',
  wait_ready: 'readiness is READY=1, see sd_notify(3), or an HTTP, TCP or exec check: "ready"',
  listen_timeout: 'see "ready.withinMs"',
  shutdown_with_message: 'a service is stopped by a signal, or by "stop.control"',
  treekill: 'its own process is asked first, and then all that is left of it is killed',
  log_date_format: 'what a service writes is kept as it is',
  log_type: 'what a service writes is kept as it is',
  time: 'what a service writes is kept as it is',
  disable_logs: 'leave out "logs" and it has a file; "logs": {} discards its output',
  autostart: 'what is described is started',
  namespace: 'services have no groups',
  post_update: 'deploying is not its business',
  deploy: 'deploying is not its business',
  filter_env: 'list what it gets in "env"',
  port: 'give it by "extraEnv"',
};

/** Takes what can be honoured of an `ecosystem.config.js`. @param folder what its paths are relative to */
export function fromPm2(value: unknown, folder: string): Imported {
  const imported = new Import();
  const given = Array.isArray(value) ? { apps: value } : value;
  if (!isObject(given)) throw new Error('it exports no object');
  const { apps = [] } = given;
  const list: unknown[] = Array.isArray(apps) ? apps : [apps];
  for (const key of Object.keys(given)) {
    if (key !== 'apps') imported.leave(null, key, reasonOf(key));
  }
  for (const app of list) {
    if (isObject(app)) takeApp(app, folder, imported);
    else imported.leave(null, 'apps', 'one of them is no object');
  }
  return imported.result;
}

function reasonOf(option: string): string {
  return Object.hasOwn(REASONS, option) ? (REASONS[option] ?? '') : 'there is nothing of that kind';
}

function takeApp(app: App, folder: string, imported: Import): void {
  const { script } = app;
  if (typeof script !== 'string' || script === '') {
    imported.leave(textOf(app['name']) ?? null, 'script', 'without one there is nothing to start');
    return;
  }
  const isLine = script.includes(' ');
  const wanted = textOf(app['name']) ?? (isLine ? script : basename(script, extname(script)));
  const leave = (option: string, reason = reasonOf(option)) => {
    imported.leave(wanted, option, reason);
  };
  for (const [option, each] of Object.entries(app)) {
    if (TAKEN.includes(option) || each === undefined || each === null) continue;
    if (Object.hasOwn(HARMLESS, option) && HARMLESS[option]?.includes(each) === true) continue;
    if (option.startsWith('env_')) leave(option, 'a service has one environment: put it in "env"');
    else leave(option);
  }
  for (const instance of instancesOf(app, leave)) {
    const suffix = instance === null ? '' : `-${instance}`;
    const variable = textOf(app['instance_var']) ?? 'NODE_APP_INSTANCE';
    const service = serviceOf(app, { script, folder, instance }, leave);
    const extraEnv: Record<string, string> = {
      ...environmentOf(app, leave),
      ...(instance === null ? {} : { [variable]: String(instance) }),
    };
    imported.add({
      name: imported.nameFor(`${wanted}${suffix}`),
      ...service,
      ...(Object.keys(extraEnv).length === 0 ? {} : { extraEnv }),
    });
  }
}

type PathOf = (path: string) => string;

/** `null`: there is one only. */
function instancesOf({ instances, exec_mode: mode }: App, leave: Leave): (number | null)[] {
  const isCluster = mode === 'cluster' || mode === 'cluster_mode';
  const isFork = mode === 'fork' || mode === 'fork_mode';
  if (mode !== undefined && !isCluster && !isFork) leave('exec_mode');
  const isMany = instances !== undefined && instances !== 1 && instances !== '1';
  if (isCluster || (isMany && !isFork)) {
    leave(
      isMany ? 'instances' : 'exec_mode',
      'it shares no port among processes; this is one process, which may use node:cluster',
    );
    return [null];
  }
  if (!isMany) return [null];
  const number = Number(instances);
  if (Number.isInteger(number) && number > 1 && number <= 1000) {
    return Array.from({ length: number }, (_, at) => at);
  }
  leave('instances', 'give their number; this is one');
  return [null];
}

function serviceOf(
  app: App,
  { script, folder, instance }: { script: string; folder: string; instance: number | null },
  leave: Leave,
): Omit<ConfiguredService, 'name'> {
  const cwd = resolve(folder, textOf(app['cwd']) ?? '.');
  const isMerged = app['merge_logs'] === true || app['combine_logs'] === true;
  /** Each instance has its own, unless they share it. */
  const pathOf = (path: string, isShared = isMerged) => {
    const whole = resolve(cwd, path.replace(/^~(?=\/|$)/, homedir()));
    if (instance === null || isShared) return whole;
    const { dir, name, ext } = parse(whole);
    return resolve(dir, `${name}-${instance}${ext}`);
  };
  const { autorestart, stop_exit_codes: codes, kill_timeout: grace } = app;
  const user = app['user'] ?? app['uid'];
  const { gid: group } = app;
  const pidfile = textOf(app['pid_file'] ?? app['pid']);
  const successes = Array.isArray(codes) ? codes : codes === undefined ? [] : [codes];
  const graceMs = milliseconds(grace, 'kill_timeout', leave) ?? 1600;
  const mode =
    autorestart === false || autorestart === 'false'
      ? 'never'
      : successes.length > 0
        ? 'on-failure'
        : ('always' as const);
  return {
    ...commandOf(app, script, cwd, leave),
    cwd,
    ...(typeof user === 'string' || typeof user === 'number' ? { user } : {}),
    ...(typeof group === 'string' || typeof group === 'number' ? { group } : {}),
    ...(pidfile === undefined ? {} : { pidfile: pathOf(pidfile, false) }),
    restart: mode,
    ...(mode === 'on-failure' ? { successExitCodes: successes.map(Number) } : {}),
    ...backoffOf(app, leave),
    stop: { signal: 'SIGINT', ...(app['treekill'] === false ? { ask: 'main' } : {}), graceMs },
    ...logsOf(app, pathOf, leave),
  };
}

function environmentOf({ env }: App, leave: Leave): Record<string, string> {
  if (env === undefined) return {};
  if (!isObject(env)) {
    leave('env', 'it is no object');
    return {};
  }
  const known = Object.entries(env).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(
    known.map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : String(value as string | number),
    ]),
  );
}

function backoffOf(app: App, leave: Leave): Pick<ConfiguredService, 'backoff'> {
  const healthyMs = milliseconds(app['min_uptime'], 'min_uptime', leave);
  const isCounted = healthyMs !== 0; // with 0 no restart is an unstable one there
  const delay = app['restart_delay'] ?? app['exp_backoff_restart_delay'];
  const firstMs = milliseconds(delay, 'restart_delay', leave);
  const most = Number(app['max_restarts'] ?? 0);
  const giveUpAfter = isCounted && Number.isInteger(most) && most > 0 ? most : undefined;
  const isExponential = app['restart_delay'] === undefined;
  if (firstMs !== undefined && isExponential) {
    leave('exp_backoff_restart_delay', 'it doubles each time here, and is 15 s at most');
  }
  // What has lived for so long starts anew.
  const enoughMs = healthyMs ?? (giveUpAfter === undefined ? undefined : LEAST_UPTIME_MS);
  const backoff = {
    ...(firstMs === undefined ? {} : { freeAttempts: 0, firstMs }),
    ...(firstMs === undefined ? {} : { capMs: isExponential ? MOST_DELAY_MS : firstMs }),
    ...(enoughMs === undefined || !isCounted ? {} : { healthyMs: enoughMs }),
    ...(giveUpAfter === undefined ? {} : { giveUpAfter }),
  };
  return Object.keys(backoff).length === 0 ? {} : { backoff };
}

function logsOf(app: App, pathOf: PathOf, leave: Leave): { logs?: RunLogs } {
  const target = (...options: string[]): LogFile => {
    const names = options.map((option) => textOf(app[option]));
    const name = names.find((each) => each !== undefined);
    return name === undefined ? undefined : logFileOf(name, pathOf);
  };
  const both = target('log_file', 'log');
  const out = target('out_file', 'output', 'out');
  const error = target('error_file', 'error', 'err_file');
  const isNamed = (file: LogFile) => file !== undefined && file !== CONSOLE;
  if (!isNamed(out) && !isNamed(error)) {
    const [given, option]: [LogFile, string] = isNamed(both)
      ? [both, 'log_file']
      : out === CONSOLE
        ? [out, 'out_file']
        : [error, 'error_file'];
    return logFile(given, option, leave);
  }
  if (both !== undefined) {
    leave('log_file', 'its output goes to one place: to out_file and error_file');
  }
  if (out === error) return logFile(out, 'out_file', leave);
  return { logs: logFiles(out, error, { out: 'out_file', error: 'error_file' }, leave) };
}

/** `10s`, `1500` and so on, as pm2 writes times. */
function milliseconds(value: unknown, option: string, leave: Leave): number | undefined {
  if (value === undefined || value === null) return undefined;
  const [, amount = '', unit = 'ms'] = /^(\d+)(ms|s|m|h)?$/.exec(textFrom(value)) ?? [];
  const scale = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit];
  if (amount !== '' && scale !== undefined) return Number(amount) * scale;
  leave(option, `${JSON.stringify(value)} is no time`);
  return undefined;
}
