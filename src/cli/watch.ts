import { once } from 'node:events';

import { requestBefore } from '../ended-by.js';
import { ExitwatchError } from '../errors.js';
import type { ExitEvent, Ready, SourceName } from '../exit-event.js';
import { ExitMonitor } from '../monitor/exit-monitor.js';

import { parseDuration } from './duration.js';
import { toJsonLine } from './escape.js';
import { EXIT_NO_SUCH_PROCESS } from './exit-codes.js';
import { ExitTable } from './exit-table.js';
import { NameFilter } from './name-filter.js';
import { NamePattern } from './name-pattern.js';
import { parseInteger } from './integer.js';
import { parseArguments } from './parse-arguments.js';
import { parseSource } from './source-option.js';
import { UsageError } from './usage-error.js';

export const WATCH_HELP = `Prints processes as they end: which, when and how.

Usage: exitwatch watch [OPTION]…

  --pid N        only this process (may be repeated); ends when all of them have ended
  --name GLOB    only processes of this name (may be repeated): the kernel's name, of
                 which it keeps 15 bytes, or the executable's file name. Of a process
                 that began after exitwatch and was reaped at once, no name is known
  --failed       only what did not exit with 0, or did after a SIGTERM, SIGINT or SIGHUP
  --signals      prints signals that could end a process, too, as they are sent
  --source S     the witness: auto (default), connector, pidfd (only with --pid), or poll
  --json         one JSON object a line: ready, then exits, gaps and changes of source,
                 with --signals signals
  --count N      ends after N processes
  --for TIME     ends after this time: 10s, 500ms, 2h
  --help         this text

Different filters narrow each other down. Ends with 0; 127 where there is no process of a
--pid, 125 where the kernel cannot be watched, 2 for wrong usage.
`;

/** What may wait for a reader who has stopped reading: some 60 MB. */
const QUEUE_LIMIT = 100_000;

interface Settings {
  pids: number[];
  names: string[];
  failed: boolean;
  signals: boolean;
  source: 'auto' | SourceName;
  json: boolean;
  count: number;
  forMs: number | undefined;
}

function parse(args: readonly string[]): Settings {
  const options = {
    pid: { type: 'string', multiple: true, default: [] as string[] },
    name: { type: 'string', multiple: true, default: [] as string[] },
    failed: { type: 'boolean', default: false },
    signals: { type: 'boolean', default: false },
    source: { type: 'string', default: 'auto' },
    json: { type: 'boolean', default: false },
    count: { type: 'string' },
    for: { type: 'string' },
  } as const;
  const { values } = parseArguments({ args: [...args], options }, hintAt);
  const pids = [...new Set(values.pid.map((text) => parseInteger('--pid', text)))];
  const source = parseSource(values.source);
  if (source === 'pidfd' && pids.length === 0) {
    throw new UsageError('--source pidfd takes --pid: a pidfd tells of one process');
  }
  if (source === 'poll' && values.signals) {
    throw new UsageError('--source poll tells of no signals: give --signals another source');
  }
  return {
    pids,
    names: values.name,
    failed: values.failed,
    signals: values.signals,
    source,
    json: values.json,
    count: values.count === undefined ? Infinity : parseInteger('--count', values.count),
    forMs: values.for === undefined ? undefined : parseDuration('--for', values.for),
  };
}

/** What somebody may have meant by a word without an option. */
function hintAt(word: string): string {
  const option = /^\d+$/.test(word) ? '--pid' : '--name';
  const command = `exitwatch watch ${option} ${/^[\w.-]+$/.test(word) ? word : JSON.stringify(word)}`;
  return `${JSON.stringify(word)} is no option; did you mean: ${command}`;
}

/** `exitwatch watch`; resolves with the exit code. */
export async function watchCommand(args: readonly string[]): Promise<number> {
  const settings = parse(args);
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
  let timer: NodeJS.Timeout | undefined;
  monitor.once('ready', (ready) => {
    if (settings.forMs !== undefined) timer = setTimeout(end, settings.forMs);
    printReady(ready, settings);
  });
  try {
    await print(monitor, settings, ending.signal);
  } finally {
    clearTimeout(timer);
    process.off('SIGINT', end);
    end();
  }
  return 0;
}

function openMonitor({ pids, source, signals }: Settings, signal: AbortSignal): ExitMonitor {
  return new ExitMonitor({
    scope: pids.length > 0 ? 'watched' : 'all',
    source,
    trace: signals ? 'on' : 'auto',
    queueLimit: QUEUE_LIMIT,
    signal,
  });
}

/** Why a process cannot be watched: because it is none. */
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

function printReady(ready: Ready, { json, pids }: Settings): void {
  if (json) {
    process.stdout.write(`${toJsonLine(ready)}\n`);
    return;
  }
  const what = ready.scope === 'all' ? 'every process of this host' : `pid ${pids.join(', ')}`;
  const filter = ready.filter === null ? '' : `, ${ready.filter} filter`;
  process.stderr.write(`watching ${what} (${ready.source}${filter})\n`);
  process.stdout.write(`${ExitTable.header()}\n`);
}

async function print(monitor: ExitMonitor, settings: Settings, signal: AbortSignal): Promise<void> {
  const table = new ExitTable(process.stdout.isTTY && !process.env['NO_COLOR']);
  const filter = settings.names.length > 0 ? new NameFilter(settings.names) : undefined;
  const isWanted = (event: ExitEvent) =>
    (filter?.matches(event) ?? true) && !(settings.failed && hasSucceeded(event));
  if (settings.signals) printSignals(monitor, settings, table);
  let left = settings.count;
  let watched = settings.pids.length > 0 ? settings.pids.length : Infinity;
  for await (const event of monitor) {
    let line: string | undefined;
    if (event.event === 'gap') {
      line = settings.json ? toJsonLine(event) : table.gap(event);
    } else if (event.event === 'source') {
      line = settings.json ? toJsonLine(event) : table.source(event);
    } else {
      watched--;
      if (isWanted(event)) {
        left--;
        line = settings.json ? toJsonLine(event) : table.exit(event);
      }
    }
    // Waiting for a slow reader keeps the backlog where it is bounded: in the monitor.
    if (line !== undefined && !process.stdout.write(`${line}\n`)) {
      await once(process.stdout, 'drain', { signal }).catch(() => undefined);
    }
    if (left <= 0 || watched <= 0) break;
  }
  if (filter !== undefined && filter.unnamed > 0) {
    process.stderr.write(
      `exitwatch: ${filter.unnamed} others ended whose names could not be read\n`,
    );
  }
}

/** It exited with 0, and nobody had asked it to end. */
function hasSucceeded(event: ExitEvent): boolean {
  return event.how === 'exited' && event.exitCode === 0 && requestBefore(event) === null;
}

/** What a reader who has stopped reading leaves behind, at most, in bytes. */
const MOST_UNWRITTEN = 16 * 1024 * 1024;

function printSignals(monitor: ExitMonitor, settings: Settings, table: ExitTable): void {
  const pattern = settings.names.length > 0 ? new NamePattern(settings.names) : undefined;
  let unwritten = 0;
  monitor.on('signal', (event) => {
    if (pattern?.matches([event.name]) === false) return;
    if (process.stdout.writableLength > MOST_UNWRITTEN) {
      unwritten++;
      return;
    }
    process.stdout.write(`${settings.json ? toJsonLine(event) : table.signal(event)}\n`);
  });
  monitor.on('close', () => {
    if (unwritten > 0) process.stderr.write(`exitwatch: ${unwritten} signals were not printed\n`);
  });
}
