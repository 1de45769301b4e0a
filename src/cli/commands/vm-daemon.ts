import { DEFAULT_PINS } from '../../memory/recorder-pins.js';
import { VmDaemon } from '../../vm/index.js';
import { parseArguments } from '../args/parse-arguments.js';
import { parseSource } from '../args/source-option.js';
import { UsageError } from '../args/usage-error.js';
import { hookCommand } from '../hooks/vm-hook.js';
import { EXIT_FAILED } from '../output/exit-codes.js';
import { describeWatched, VmLines } from '../output/vm-text.js';
import { keepServiceAlive, notifyService } from '../service.js';
import { untilSignalled } from '../until-signalled.js';

export const VM_DAEMON_HELP = `Watches the virtual machines of a directory, and remembers why they ended.

Usage: exitwatch vm daemon --control-dir DIR --state-dir DIR [OPTION]…

  --control-dir DIR  the directory with the machines' files: NAME.qmp, NAME.pid,
                     NAME.events, NAME.log. It may be missing, and appear or
                     disappear later
  --state-dir DIR    the directory to remember the ends in: NAME.json for each
                     machine, and NAME.shutdown after a shutdown by its user.
                     Record in DIR/intents what you are about to do to a machine
  --hook COMMAND     runs COMMAND for each end, with the verdict in its
                     environment (EXITWATCH_…) and as JSON on its stdin
  --source S         the source: auto (default), connector, pidfd or poll
  --pin-dir DIR      the directory for recorders, which remember how machines
                     end while no daemon runs (default: ${DEFAULT_PINS})
  --json             prints one JSON object per line
  --help             prints this text

Exits with 0 after SIGTERM or SIGINT; the machines keep running. Exits with 125
if it cannot watch the machines or write the state directory, or if another
daemon uses it; with 2 for wrong usage.
`;

/** `exitwatch vm daemon`; resolves with the exit code. */
export async function vmDaemonCommand(args: readonly string[]): Promise<number> {
  const { hook, json, ...options } = parse(args);
  const daemon = new VmDaemon({
    ...options,
    ...(hook === undefined ? {} : { hook: hookCommand(hook) }),
  });
  const lines = new VmLines(json);
  let isReady = false;
  let isEnding = false;
  const tellStatus = () => {
    if (isReady) notifyService(`STATUS=${describeWatched(daemon.watched)}`);
  };
  daemon.on('found', (start) => {
    lines.found(start);
    tellStatus();
  });
  daemon.on('stopped', (end) => {
    lines.stopped(end);
    setImmediate(tellStatus); // only then is it no longer counted
  });
  daemon.on('warning', (error, name) => {
    lines.warning(error, name);
  });
  daemon.on('presence', (isThere) => {
    lines.presence(options.controlDir, isThere);
  });
  const failed = new Promise<Error>((resolve) => daemon.once('error', resolve));
  const signalled = untilSignalled();
  let rest: (() => void) | undefined;
  const started = daemon.start().then(() => {
    if (isEnding) return;
    rest = keepServiceAlive();
    lines.ready(daemon.watched);
    isReady = true;
    notifyService(`READY=1\nSTATUS=${describeWatched(daemon.watched)}`);
  });
  // Also accept signals during the start, which may have to wait for a disk.
  const failure = await Promise.race([
    signalled,
    failed,
    started.then(() => Promise.race([signalled, failed])),
  ]);
  isEnding = true;
  started.catch(() => undefined); // it was closed on purpose
  notifyService('STOPPING=1');
  rest?.();
  await daemon.close();
  if (failure === undefined) return 0;
  lines.warning(failure, null);
  return EXIT_FAILED;
}

function parse(args: readonly string[]) {
  const { values } = parseArguments({
    args: [...args],
    options: {
      'control-dir': { type: 'string' },
      'state-dir': { type: 'string' },
      hook: { type: 'string' },
      source: { type: 'string', default: 'auto' },
      'pin-dir': { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const { 'control-dir': controlDir, 'state-dir': stateDir, hook, source, json } = values;
  const { 'pin-dir': pinDir } = values;
  if (controlDir === undefined || stateDir === undefined) {
    throw new UsageError('vm daemon requires --control-dir DIR and --state-dir DIR');
  }
  const recorder = pinDir === undefined ? {} : { pinDir };
  return { controlDir, stateDir, hook, source: parseSource(source), recorder, json };
}
