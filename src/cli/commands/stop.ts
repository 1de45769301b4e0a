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

export const STOP_HELP = `Stops a process, and ends when its end was observed.

Usage: exitwatch stop PID|PIDFILE [OPTION]…

  --signal NAME      asks it to end: TERM (default), INT, HUP, …
  --kill-after TIME  ends it by SIGKILL if it has not by then: 5s (default), 500ms
  --timeout TIME     gives up if it is still there: 30s (default)
  --tree             stops all that belongs to it, too; see below
  --executable NAME  it has to run this: an executable, or the script of an interpreter; a
                     path, or a file name in full
  --intent-log FILE  writes down what is about to be done, before it is done
  --reason TEXT      why, for the intent log
  --force            also init
  --json             the outcome as a JSON object
  --help             this text

The process is held on to while it is looked at and signalled: a later one with its pid gets nothing. A
pidfile is removed when its process is gone. A word without a slash or a dot is none, unless it is there.
A process that runs something else, a thread and a kernel thread are not gone: they are an error, and get
no signal.

With --tree all that belongs to the process is stopped: what is in its cgroup (v2), if that holds nobody
else; and its descendants, its session if it leads one, and its group if it leads that. Each gets the
signal, and SIGKILL after --kill-after. What had left all of these before is not found.

On a terminal it tells on stderr what it waits for.

Ends with 0 when it is gone, also if it was before; with 124 if it, or one of its tree, is still there;
127 if there is no such pidfile, 125 if it cannot be stopped, 2 for wrong usage.
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
      ? 'stop it from outside, or without --tree'
      : 'if it is meant, give --force';
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
  if (outcome === 'timed-out') return `${whoRemains(result)} still there`;
  if (outcome === 'already-gone') return 'it was gone already';
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
  if (sender === null) return 'by itself';
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

/** `3 others of its tree, 1 by SIGKILL` */
function describeOthers(others: readonly StoppedMember[]): string {
  const count = others.length === 1 ? '1 other' : `${others.length} others`;
  const killed = others.filter(({ outcome }) => outcome === 'forced').length;
  return `${count} of its tree${killed === 0 ? '' : `, ${killed} by SIGKILL`}`;
}

function parse(args: readonly string[]) {
  const parsed = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      signal: { type: 'string', default: 'TERM' },
      'kill-after': { type: 'string', default: '5s' },
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
    throw new UsageError('stop takes one PID or PIDFILE');
  }
  const { signal, timeout, tree, executable, reason, force, json } = parsed.values;
  const killAfterMs = Math.ceil(parseDuration('--kill-after', parsed.values['kill-after']));
  const confirmTimeoutMs = Math.ceil(parseDuration('--timeout', timeout)) - killAfterMs;
  if (confirmTimeoutMs < 0) throw new UsageError('--timeout has to be at least --kill-after');
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
  throw new UsageError(`there is no signal ${JSON.stringify(text)}`);
}
