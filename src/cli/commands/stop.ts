import { signalNumber, type SignalName } from '../../events/wait-status.js';
import { stop, type StoppedMember, type StopResult, type StopWait } from '../../process/index.js';
import { parseDuration } from '../args/duration.js';
import { parseArguments } from '../args/parse-arguments.js';
import { findProcess, isMissingPidfile, noPidfile } from '../args/process-argument.js';
import { UsageError } from '../args/usage-error.js';
import { refusal } from '../output/error-text.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_NO_SUCH_PROCESS, EXIT_TIMEOUT } from '../output/exit-codes.js';
import { describeExit } from '../output/exit-table.js';
import { describeSender } from '../output/sender-text.js';
import { StopProgress } from '../output/stop-progress.js';

export const STOP_HELP = `Stops a process, and exits when the process has ended.

Usage: exitwatch stop PID|PIDFILE [OPTION]…

  --signal NAME      asks it to exit with this signal: TERM (default), INT, …
  --kill-after TIME  sends SIGKILL if it is still running: 5s (default, or half
                     of --timeout if that is less), 500ms
  --timeout TIME     gives up if it is still running: 30s (default)
  --tree             also stops everything that belongs to it; see below
  --executable NAME  the process must run this: an executable, or the script of
                     an interpreter; a path, or a full file name
  --intent-log FILE  records each step in this file beforehand
  --reason TEXT      the reason to record in the intent log
  --force            allows you to stop init
  --json             prints the outcome as a JSON object
  --help             prints this text

The signal goes only to the process that was checked, never to a later one with
the same pid. The pidfile is removed when its process is gone. A word without a
slash or a dot is a pidfile only if that file exists. If the process runs
something else, or the pid is a thread's or a kernel thread's, that is an error,
and nothing gets a signal.

--tree stops everything that belongs to the process: its descendants, its
session or process group if it leads one, and its cgroup (v2) if that contains
nothing else. Each process gets the signal, and SIGKILL after --kill-after. A
process that had left all of these before is not found.

On a terminal, stderr shows what the command waits for.

Exits with 0 if the process is gone, even if it was gone before; 124 if it, or
one of its tree, is still running; 127 if there is no such pidfile, 125 if it
cannot be stopped, 2 for wrong usage.
`;

/** `exitwatch stop`; resolves with the exit code. */
export async function stopCommand(args: readonly string[]): Promise<number> {
  const { argument, executable, json, ...options } = parse(args);
  const progress = new StopProgress();
  let result;
  try {
    const { target, pidfile } = await findProcess(argument, executable);
    const onWait = (wait: StopWait) => {
      progress.tell(wait);
    };
    result = await stop(target, {
      ...options,
      onWait,
      ...(pidfile === undefined ? {} : { pidfile }),
    });
  } catch (error) {
    const remedy = options.tree
      ? 'stop it from outside its tree, or without --tree'
      : 'use --force if you mean it';
    if (!isMissingPidfile(error)) throw refusal(error, remedy);
    process.stderr.write(`exitwatch: ${escapeText(noPidfile(argument))}\n`);
    return EXIT_NO_SUCH_PROCESS;
  } finally {
    progress.end();
  }
  const text = json ? toJsonLine({ event: 'stop', ...result }) : describeStopped(result);
  process.stdout.write(`${text}\n`);
  for (const { detail } of result.warnings) {
    process.stderr.write(`exitwatch: ${escapeText(detail)}\n`);
  }
  return result.outcome === 'timed-out' ? EXIT_TIMEOUT : 0;
}

/** How a process was stopped, as a sentence. */
export function describeStopped(result: StopResult): string {
  const { outcome, via, exit, identity, tree, endedBy, endedByUs } = result;
  if (outcome === 'timed-out') return `${whoRemains(result)} still running`;
  if (outcome === 'already-gone') return 'it was already gone';
  const by = { control: 'a control call', signal: 'the signal', kill: 'SIGKILL' }[via ?? 'signal'];
  const other = endedByUs === false ? `, not by us: ${describeOther(endedBy, identity)}` : '';
  const others = tree?.members.filter((member) => member.identity.id !== identity?.id) ?? [];
  if (others.length === 0) return `${describeExit(exit)}${other === '' ? `, by ${by}` : other}`;
  const root = tree?.members.find((member) => member.identity.id === identity?.id);
  const rootBy = root?.outcome === 'forced' ? 'SIGKILL' : 'the signal';
  return `${describeExit(exit)}${other === '' ? `, by ${rootBy}` : other}; and ${describeOthers(others)}`;
}

/** Another sender whose signal came first. */
function describeOther(sender: StopResult['endedBy'], identity: StopResult['identity']): string {
  if (sender === null) return 'on its own';
  return `${sender.signal} from ${describeSender(sender, identity?.pid ?? 0)}`;
}

/** `4242 is`, `4242 (sh) and 4250 (sleep) are` */
function whoRemains({ identity, tree }: StopResult): string {
  const remaining = tree?.members.filter(({ outcome }) => outcome === 'timed-out') ?? [];
  if (remaining.length === 0) return `${identity?.pid ?? ''} is`;
  const names = remaining.map(({ identity: { pid }, name }) =>
    name === null ? String(pid) : `${pid} (${escapeText(name)})`,
  );
  return names.length === 1 ? `${names.join('')} is` : `${names.join(', ')} are`;
}

/** `3 others in its tree, 1 by SIGKILL` */
function describeOthers(others: readonly StoppedMember[]): string {
  const count = others.length === 1 ? '1 other' : `${others.length} others`;
  const killed = others.filter(({ outcome }) => outcome === 'forced').length;
  return `${count} in its tree${killed === 0 ? '' : `, ${killed} by SIGKILL`}`;
}

/** How long to wait after the signal, unless the user says so. */
const KILL_AFTER_MS = 5000;

function parse(args: readonly string[]) {
  const parsed = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      signal: { type: 'string', default: 'TERM' },
      'kill-after': { type: 'string' },
      timeout: { type: 'string', default: '30s' },
      tree: { type: 'boolean', default: false },
      executable: { type: 'string' },
      'intent-log': { type: 'string' },
      reason: { type: 'string' },
      force: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const [argument, ...more] = parsed.positionals;
  if (argument === undefined || argument === '' || more.length > 0) {
    throw new UsageError('stop requires exactly one PID or PIDFILE');
  }
  const { signal, timeout, tree, executable, reason, force, json } = parsed.values;
  const timeoutMs = Math.ceil(parseDuration('--timeout', timeout));
  const killAfter = parsed.values['kill-after'];
  const killAfterMs =
    killAfter === undefined
      ? Math.min(KILL_AFTER_MS, Math.floor(timeoutMs / 2))
      : Math.ceil(parseDuration('--kill-after', killAfter));
  const confirmTimeoutMs = timeoutMs - killAfterMs;
  if (confirmTimeoutMs <= 0) {
    throw new UsageError('--timeout must be longer than --kill-after: it includes that time');
  }
  const intentLog = parsed.values['intent-log'];
  return {
    argument,
    executable,
    json,
    tree,
    force,
    killSignal: parseSignal(signal),
    forceKillAfterDelayMs: killAfterMs,
    confirmTimeoutMs,
    ...(intentLog === undefined ? {} : { intentLog }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function parseSignal(text: string): SignalName {
  const upper = text.toUpperCase();
  const name = (upper.startsWith('SIG') ? upper : `SIG${upper}`) as SignalName;
  if (signalNumber(name) > 0) return name;
  throw new UsageError(`unknown signal ${JSON.stringify(text)}`);
}
