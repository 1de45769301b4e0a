import { ExitwatchError } from '../../common/errors.js';
import { readPidfile } from '../../process/index.js';
import { machineName, VmDirectory, VmMonitor, type VmOptions } from '../../vm/index.js';

import { parseDuration } from '../args/duration.js';
import { EXIT_FAILED, EXIT_NO_SUCH_PROCESS } from '../output/exit-codes.js';
import { parseArguments } from '../args/parse-arguments.js';
import { parseInteger } from '../args/integer.js';
import { noPidfile } from '../args/process-argument.js';
import { parseSource } from '../args/source-option.js';
import { untilSignalled } from '../until-signalled.js';
import { UsageError } from '../args/usage-error.js';
import { VmLines } from '../output/vm-text.js';

export const VM_WATCH_HELP = `Prints virtual machines as they start and end, and why. Stores nothing.

Usage: exitwatch vm watch --control-dir DIR [OPTION]…
       exitwatch vm watch --pid N|--pidfile FILE [OPTION]…

  --control-dir DIR  watches every machine with files in DIR: NAME.qmp,
                     NAME.pid, NAME.events, NAME.log
  --pid N            watches only this process, and exits when it has ended
  --pidfile FILE     watches only the process that this pidfile names
  --qmp SOCKET       its QMP socket; nobody else may be connected to it
  --event-log FILE   its event log
  --log FILE         its log
  --intent-log FILE  the file in which its manager records each step beforehand
  --source S         the source: auto (default), connector, pidfd or poll
  --json             prints one JSON object per line
  --count N          exits after N ends
  --for TIME         exits after this time: 10s, 500ms, 2h
  --help             prints this text

Exits with 0; 127 if there is no such process or pidfile, 125 if nothing can be
watched, 2 for wrong usage.
`;

const MISSING: readonly string[] = [
  'ERR_EXITWATCH_NO_SUCH_PROCESS',
  'ERR_EXITWATCH_KERNEL_THREAD',
  'ERR_EXITWATCH_NO_PIDFILE',
];

/** `exitwatch vm watch`; resolves with the exit code. */
export async function vmWatchCommand(args: readonly string[]): Promise<number> {
  const { controlDir, vm, intentLog, source, json, count, forMs } = parse(args);
  const lines = new VmLines(json);
  let failure: Error | undefined;
  let isOver = false;
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let monitor: VmMonitor | undefined;
  let directory: VmDirectory | undefined;
  let left = count;
  process.stdout.on('error', finish); // the reader is gone
  const timer = forMs === undefined ? undefined : setTimeout(finish, forMs);
  try {
    monitor = new VmMonitor({ ...(intentLog === undefined ? {} : { intentLog }), source });
    monitor.on('warning', (error, name) => {
      lines.warning(error, name);
    });
    await monitor.start();
    const stopped = (end: Parameters<VmLines['stopped']>[0]) => {
      if (left <= 0) return;
      lines.stopped(end);
      if (--left <= 0) finish();
    };
    if (controlDir === undefined) {
      const target = await resolveTarget(vm);
      const watch = monitor.watch(target);
      lines.found({
        name: target.name,
        identity: watch.identity,
        uid: null,
        eventLog: null,
        command: null,
      });
      watch.stopped.then(
        (stop) => {
          stopped({ stop, identity: watch.identity });
          finish();
        },
        (error: unknown) => {
          if (!isOver) failure = error as Error;
          finish();
        },
      );
    } else {
      directory = openDirectory(controlDir, monitor, lines, stopped, (error) => {
        failure = error;
        finish();
      });
      await directory.open([]);
    }
    await Promise.race([finished, untilSignalled()]);
    isOver = true; // closing from here on is not a failure
  } catch (error) {
    if (!(error instanceof ExitwatchError)) throw error;
    if (!MISSING.includes(error.code)) throw error;
    const isFile = error.code === 'ERR_EXITWATCH_NO_PIDFILE';
    const detail = isFile ? noPidfile(vm.pidfile ?? '') : error.message;
    lines.warning(new ExitwatchError(error.code, detail), null);
    return EXIT_NO_SUCH_PROCESS;
  } finally {
    clearTimeout(timer);
    await directory?.close();
    await monitor?.close();
  }
  if (failure === undefined) return 0;
  lines.warning(failure, null);
  return EXIT_FAILED;
}

/** Reads a pidfile only once; after that the process is known. */
async function resolveTarget(options: VmOptions): Promise<VmOptions> {
  const { pidfile, pid } = options;
  if (pidfile === undefined || pid !== undefined) return named(options, pid);
  const { identity, pid: found } = await readPidfile(pidfile);
  return named({ ...options, ...(identity === null ? { pid: found } : { identity }) }, found);
}

/** With the name that libvirt or Proxmox knows it by, if it is theirs. */
function named(options: VmOptions, pid: number | undefined): VmOptions {
  const name = pid === undefined ? null : machineName(pid);
  return name === null ? options : { ...options, name };
}

function openDirectory(
  path: string,
  monitor: VmMonitor,
  lines: VmLines,
  stopped: (end: Parameters<VmLines['stopped']>[0]) => void,
  failed: (error: Error) => void,
): VmDirectory {
  return new VmDirectory(path, monitor, new Date(), {
    found: (start) => {
      lines.found(start);
      return Promise.resolve();
    },
    logged: () => Promise.resolve(),
    ended: ({ identity }, stop) => {
      stopped({ stop, identity });
      return Promise.resolve();
    },
    warning: (error, name) => {
      lines.warning(error, name);
    },
    presence: (isThere) => {
      lines.presence(path, isThere);
    },
    failed,
  });
}

function parse(args: readonly string[]) {
  const { values } = parseArguments({
    args: [...args],
    options: {
      'control-dir': { type: 'string' },
      pid: { type: 'string' },
      pidfile: { type: 'string' },
      qmp: { type: 'string' },
      'event-log': { type: 'string' },
      log: { type: 'string' },
      'intent-log': { type: 'string' },
      source: { type: 'string', default: 'auto' },
      json: { type: 'boolean', default: false },
      count: { type: 'string' },
      for: { type: 'string' },
    },
  });
  const { pid, pidfile, qmp, log, source, json } = values;
  const controlDir = values['control-dir'];
  if ([controlDir, pid, pidfile].filter((each) => each !== undefined).length !== 1) {
    throw new UsageError('vm watch requires exactly one of --control-dir, --pid and --pidfile');
  }
  const eventLog = values['event-log'];
  if (controlDir !== undefined && [qmp, eventLog, log].some((each) => each !== undefined)) {
    throw new UsageError(
      '--control-dir cannot be combined with --qmp, --event-log or --log: it contains these files',
    );
  }
  const vm: VmOptions = {
    name: pid ?? pidfile ?? '',
    ...(pid === undefined ? {} : { pid: parseInteger('--pid', pid) }),
    ...(pidfile === undefined ? {} : { pidfile }),
    ...(qmp === undefined ? {} : { qmp }),
    ...(eventLog === undefined ? {} : { eventLog }),
    ...(log === undefined ? {} : { log }),
  };
  return {
    controlDir,
    vm,
    intentLog: values['intent-log'],
    source: parseSource(source),
    json,
    count: values.count === undefined ? Infinity : parseInteger('--count', values.count),
    forMs: values.for === undefined ? undefined : parseDuration('--for', values.for),
  };
}
