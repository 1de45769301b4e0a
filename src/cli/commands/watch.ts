import { ExitwatchError } from '../../common/errors.js';
import type { SourceName } from '../../events/exit-event.js';
import type { SignalEvent } from '../../events/signal-event.js';
import { ExitMonitor } from '../../monitor/exit-monitor.js';
import { sourceKind } from '../../sources/registry.js';
import {
  COMMAND_LINE_HELP,
  COMMAND_LINE_OPTIONS,
  parseCommandLines,
} from '../args/command-lines.js';
import { parseDuration } from '../args/duration.js';
import { parseInteger } from '../args/integer.js';
import { hasOutcome } from '../args/outcome-filter.js';
import { parseArguments } from '../args/parse-arguments.js';
import {
  ownUnit,
  parseCgroup,
  parseUser,
  ProcessFilter,
  type ProcessCriteria,
} from '../args/process-filter.js';
import { parseSource } from '../args/source-option.js';
import { UsageError } from '../args/usage-error.js';
import { OwnFamily } from '../hooks/own-family.js';
import { WatchHook } from '../hooks/watch-hook.js';
import { DoubtfulSignals } from '../output/doubtful-signals.js';
import { EXIT_NO_SUCH_PROCESS } from '../output/exit-codes.js';
import { WatchPrinter } from '../output/watch-printer.js';

export const WATCH_HELP = `Prints processes as they end: which ones, when, and how.

Usage: exitwatch watch [OPTION]…

  --pid N        only this process (may be repeated); exits when all of them
                 have ended
  --name GLOB    only processes with this name (may be repeated): the kernel's
                 name (its first 15 bytes), or the program's file name
  --user USER    only processes of this user, by name or uid (may be repeated)
  --cgroup PATH  only processes in this cgroup (v2) or below it (may be
                 repeated): a path from the root (/system.slice), or any part of
                 one (nginx.service)
  --unit UNIT    only processes of this unit of the system's systemd (may be
                 repeated): a name or a glob; nginx is nginx.service; 1000:nginx
                 is that of the manager of the user 1000
  --user-unit UNIT  the same of your own user's manager
  --container C  only processes in this container (may be repeated): its name, a
                 glob, or the first digits of its id, which also select what
                 runs in containers inside it; 1000:ID is one that the user 1000
                 runs
  --parent N     only children of this process (may be repeated)
  --failed       only processes that did not exit with 0, or did so after a
                 SIGTERM, SIGINT or SIGQUIT, or right after a SIGHUP
  --killed       only processes that a signal killed
  --signals      also prints signals that could end a process, as they are sent
  --source S     the source: auto (default), connector, pidfd (only with --pid)
                 or poll
  --exec COMMAND runs COMMAND for each event, one at a time, with the main facts
                 in its environment (EXITWATCH_…), and all of them as JSON on
                 its stdin
${COMMAND_LINE_HELP}
  --json         prints one JSON object per line: ready, then exits, gaps and
                 changes of source; with --signals, also signals
  --count N      exits after N processes
  --for TIME     exits after this time: 10s, 500ms, 2h
  --help         prints this text

A process must match all kinds of filters that you give, and one value of each.
Filters also apply to processes that start later. Without the eBPF filter, the
program of a process that started later is known only if it lived for a second.
Processes that --exec starts are not reported.

Exits with 0; 127 if no process has the pid of a --pid, 125 if the kernel cannot
be watched, 2 for wrong usage.
`;

/** Most exits to buffer for a reader that has stopped reading: about 60 MB. */
const QUEUE_LIMIT = 100_000;

/** Shorter waits are not announced. */
const PATIENCE_MS = 2000;

interface Settings {
  pids: number[];
  criteria: ProcessCriteria;
  failed: boolean;
  killed: boolean;
  exec: string | undefined;
  signals: boolean;
  source: 'auto' | SourceName;
  commandLines: ReturnType<typeof parseCommandLines>;
  json: boolean;
  count: number;
  forMs: number | undefined;
}

function parse(args: readonly string[]): Settings {
  const options = {
    pid: { type: 'string', multiple: true, default: [] as string[] },
    name: { type: 'string', multiple: true, default: [] as string[] },
    user: { type: 'string', multiple: true, default: [] as string[] },
    cgroup: { type: 'string', multiple: true, default: [] as string[] },
    unit: { type: 'string', multiple: true, default: [] as string[] },
    'user-unit': { type: 'string', multiple: true, default: [] as string[] },
    container: { type: 'string', multiple: true, default: [] as string[] },
    parent: { type: 'string', multiple: true, default: [] as string[] },
    failed: { type: 'boolean', default: false },
    killed: { type: 'boolean', default: false },
    exec: { type: 'string' },
    signals: { type: 'boolean', default: false },
    source: { type: 'string', default: 'auto' },
    ...COMMAND_LINE_OPTIONS,
    json: { type: 'boolean', default: false },
    count: { type: 'string' },
    for: { type: 'string' },
  } as const;
  const { values } = parseArguments({ args: [...args], options }, hintAt);
  const pids = [...new Set(values.pid.map((text) => parseInteger('--pid', text)))];
  const source = parseSource(values.source);
  const kind = source === 'auto' ? null : sourceKind(source);
  if (kind?.tellsAll === false && pids.length === 0) {
    throw new UsageError(`--source ${source} requires --pid: a ${source} reports a single process`);
  }
  if (kind?.tellsSignals === false && values.signals) {
    throw new UsageError(
      `--source ${source} does not report signals; use --signals with another source`,
    );
  }
  return {
    pids,
    criteria: {
      names: values.name,
      uids: values.user.map(parseUser),
      cgroups: values.cgroup.map(parseCgroup),
      units: [...values.unit, ...values['user-unit'].map(ownUnit)],
      containers: values.container,
      parents: values.parent.map((text) => parseInteger('--parent', text)),
    },
    failed: values.failed,
    killed: values.killed,
    exec: values.exec,
    signals: values.signals,
    source,
    commandLines: parseCommandLines(values),
    json: values.json,
    count: values.count === undefined ? Infinity : parseInteger('--count', values.count),
    forMs: values.for === undefined ? undefined : parseDuration('--for', values.for),
  };
}

/** What a word without an option may have meant. */
function hintAt(word: string): string {
  const option = /^\d+$/.test(word) ? '--pid' : '--name';
  const command = `exitwatch watch ${option} ${/^[\w.-]+$/.test(word) ? word : JSON.stringify(word)}`;
  return `unexpected argument ${JSON.stringify(word)}; did you mean: ${command}`;
}

/** `exitwatch watch`; resolves with the exit code. */
export async function watchCommand(args: readonly string[]): Promise<number> {
  const settings = parse(args);
  const filter = new ProcessFilter(settings.criteria);
  const ending = new AbortController();
  const end = () => {
    ending.abort();
  };
  const monitor = openMonitor(settings, ending.signal);
  const missing = watchAll(monitor, settings.pids);
  if (missing !== undefined) {
    end();
    process.stderr.write(`exitwatch: ${missing}\n`);
    return EXIT_NO_SUCH_PROCESS;
  }
  process.once('SIGINT', end);
  process.stdout.on('error', end);
  const patience = setTimeout(() => {
    if (process.stderr.isTTY) process.stderr.write('waiting for the first event from the kernel\n');
  }, PATIENCE_MS);
  let timer: NodeJS.Timeout | undefined;
  const printer = new WatchPrinter({ ...settings, hasCommands: settings.commandLines !== false });
  monitor.once('ready', (ready) => {
    clearTimeout(patience);
    if (settings.forMs !== undefined) timer = setTimeout(end, settings.forMs);
    printer.ready(ready, settings.pids);
  });
  try {
    await print(monitor, settings, filter, printer, ending.signal);
  } finally {
    clearTimeout(patience);
    clearTimeout(timer);
    process.off('SIGINT', end);
    filter.close();
    end();
  }
  return 0;
}

function openMonitor(
  { pids, source, signals, commandLines }: Settings,
  signal: AbortSignal,
): ExitMonitor {
  return new ExitMonitor({
    scope: pids.length > 0 ? 'watched' : 'all',
    source,
    trace: signals ? 'on' : 'auto',
    commandLines,
    queueLimit: QUEUE_LIMIT,
    signal,
  });
}

/** Watches all pids; returns why one of them cannot be watched. */
function watchAll(monitor: ExitMonitor, pids: readonly number[]): string | undefined {
  try {
    for (const pid of pids) monitor.watch(pid);
    return undefined;
  } catch (error) {
    if (!(error instanceof ExitwatchError)) throw error;
    switch (error.code) {
      case 'ERR_EXITWATCH_NO_SUCH_PROCESS':
      case 'ERR_EXITWATCH_KERNEL_THREAD':
        return error.message;
      default:
        throw error;
    }
  }
}

async function print(
  monitor: ExitMonitor,
  settings: Settings,
  filter: ProcessFilter,
  printer: WatchPrinter,
  signal: AbortSignal,
): Promise<void> {
  const family = new OwnFamily();
  const hook = settings.exec === undefined ? undefined : new WatchHook(settings.exec, family);
  monitor.on('exit', (event) => {
    family.learn(event);
  });
  const tell = (event: SignalEvent) => {
    if (hook !== undefined && family.hasGot(event)) return;
    printer.signal(event);
    hook?.add(event);
  };
  const doubtful = new DoubtfulSignals();
  if (settings.signals) {
    monitor.on('signal', (event) => {
      const isMeant = filter.matchesTarget(event);
      if (isMeant === null) doubtful.add(event);
      else if (isMeant) tell(event);
    });
  }
  let left = settings.count;
  let watched = settings.pids.length > 0 ? settings.pids.length : Infinity;
  for await (const event of monitor) {
    if (event.event === 'exit') {
      watched--;
      const signals = doubtful.take(event.id);
      const isOwn = hook !== undefined && (await family.has(event));
      if (isOwn) filter.forget(event);
      else if (filter.matches(event)) {
        signals.forEach(tell);
        if (hasOutcome(event, settings)) {
          left--;
          hook?.add(event);
          await printer.print(event, signal);
        }
      }
    } else {
      if (event.event === 'gap') filter.onGap();
      if (event.event === 'source') filter.onSource();
      hook?.add(event);
      await printer.print(event, signal);
    }
    if (left <= 0 || watched <= 0) break;
  }
  await hook?.end(signal);
  printer.end();
  if (doubtful.skipped > 0) {
    process.stderr.write(
      `exitwatch: skipped ${doubtful.skipped} signals to processes about which too little is known\n`,
    );
  }
  if (filter.untold > 0) {
    process.stderr.write(
      `exitwatch: ${filter.untold} other processes ended; too little is known to filter them\n`,
    );
  }
}
