import { ExitwatchError } from '../errors.js';
import { stop, type StopResult } from '../process/index.js';
import { signalNumber, type SignalName } from '../wait-status.js';

import { parseDuration } from './duration.js';
import { escapeText, toJsonLine } from './escape.js';
import { EXIT_NO_SUCH_PROCESS, EXIT_TIMEOUT } from './exit-codes.js';
import { describeExit } from './exit-table.js';
import { findProcess, isMissingPidfile } from './process-argument.js';
import { parseArguments } from './parse-arguments.js';
import { UsageError } from './usage-error.js';

export const STOP_HELP = `Stops a process, and ends when its end was observed.

Usage: exitwatch stop PID|PIDFILE [OPTION]…

  --signal NAME      asks it to end: TERM (default), INT, HUP, …
  --kill-after TIME  ends it by SIGKILL if it has not by then: 5s (default), 500ms
  --timeout TIME     gives up if it is still there: 30s (default)
  --executable NAME  it has to run this: a path, or a file name in full
  --intent-log FILE  writes down what is about to be done, before it is done
  --reason TEXT      why, for the intent log
  --force            also init
  --json             the outcome as a JSON object
  --help             this text

The process is held on to while it is looked at and signalled: whoever has its pid later gets nothing. A
pidfile is removed when its process is gone.

Ends with 0 when it is gone, also if it was before; with 124 if it is not, 127 where there is no such
pidfile, 125 where it cannot be stopped, 2 for wrong usage.
`;

/** `exitwatch stop`; resolves with the exit code. */
export async function stopCommand(args: readonly string[]): Promise<number> {
  const { argument, executable, json, ...options } = parse(args);
  let result;
  try {
    const { target, pidfile } = await findProcess(argument, executable);
    result = await stop(target, { ...options, ...(pidfile === undefined ? {} : { pidfile }) });
  } catch (error) {
    if (error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_INVALID_PID') {
      throw new UsageError(error.message);
    }
    if (!isMissingPidfile(error)) throw error;
    process.stderr.write(`exitwatch: ${escapeText(error.message)}\n`);
    return EXIT_NO_SUCH_PROCESS;
  }
  process.stdout.write(`${json ? toJsonLine({ event: 'stop', ...result }) : describe(result)}\n`);
  for (const { detail } of result.warnings) {
    process.stderr.write(`exitwatch: ${escapeText(detail)}\n`);
  }
  return result.outcome === 'timed-out' ? EXIT_TIMEOUT : 0;
}

function describe({ outcome, via, exit, identity }: StopResult): string {
  if (outcome === 'timed-out') return `${identity?.pid ?? ''} is still there`;
  if (outcome === 'already-gone') return 'it was gone already';
  const by = { control: 'a control call', signal: 'the signal', kill: 'SIGKILL' }[via ?? 'signal'];
  return `${describeExit(exit)}, by ${by}`;
}

function parse(args: readonly string[]) {
  const parsed = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      signal: { type: 'string', default: 'TERM' },
      'kill-after': { type: 'string', default: '5s' },
      timeout: { type: 'string', default: '30s' },
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
  const { signal, timeout, executable, reason, force, json } = parsed.values;
  const killAfterMs = Math.ceil(parseDuration('--kill-after', parsed.values['kill-after']));
  const confirmTimeoutMs = Math.ceil(parseDuration('--timeout', timeout)) - killAfterMs;
  if (confirmTimeoutMs < 0) throw new UsageError('--timeout is not below --kill-after');
  const intentLog = parsed.values['intent-log'];
  return {
    argument,
    executable,
    json,
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
