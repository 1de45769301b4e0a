import {
  IntentLog,
  isAlive,
  readIntents,
  type ControlName,
  type Intent,
  type IntentOutcome,
} from '../../process/index.js';
import { signalNumber, type SignalName } from '../../events/wait-status.js';
import { intentLogPath } from '../../vm/daemon/state-file.js';

import { parseDuration } from '../args/duration.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_NO_SUCH_PROCESS } from '../output/exit-codes.js';
import { findMachine, NoSuchMachine } from '../args/vm-machine.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';

export const INTENT_ADD_HELP = `Writes down what you are about to do to a process, and prints the intent's id.

Usage: exitwatch intent add WHAT --pid N|--pidfile FILE [OPTION]…

  WHAT               powerdown, quit, migrate or save (of a virtual machine), a signal (TERM,
                     KILL, …), or control for anything else
  --pid N            the process as it is now
  --pidfile FILE     the process that this names
  --deadline TIME    when it should have taken effect: 60s (default), 500ms, 5m; later, an end is not
                     its doing
  --reason TEXT      why
  --intent-log FILE  where to
  --state-dir DIR    the daemon's: to DIR/intents
  --json             the intent as a JSON object
  --help             this text

Do it only when this has ended with 0: then the intent is on the disk. Say what came of it by exitwatch
intent settle; without that, it counts as done until its deadline.

Ends with 0; 127 if there is no such process or pidfile, 125 if it cannot be written down, 2 for wrong usage.
`;

export const INTENT_SETTLE_HELP = `Writes down what came of an intent.

Usage: exitwatch intent settle ID OUTCOME [OPTION]…

  ID                 as exitwatch intent add has printed it
  OUTCOME            delivered, not-delivered, uncertain (it failed on its way, perhaps after it took
                     effect), or superseded (the process had ended before)
  --intent-log FILE  where it is
  --state-dir DIR    the daemon's: in DIR/intents
  --help             this text

Ends with 0; 127 if there is no such intent, 125 if it cannot be written down, 2 for wrong usage.
`;

const CONTROLS: readonly string[] = ['control', 'powerdown', 'quit', 'migrate', 'save'];

const OUTCOMES: readonly string[] = ['delivered', 'not-delivered', 'uncertain', 'superseded'];

/** The log keeps this much of a reason. */
const MOST_REASON = 1024;

const LOG_OPTIONS = {
  'intent-log': { type: 'string' },
  'state-dir': { type: 'string' },
} as const;

/** `exitwatch intent add`; resolves with the exit code. */
export async function intentAddCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      ...LOG_OPTIONS,
      pid: { type: 'string' },
      pidfile: { type: 'string' },
      deadline: { type: 'string', default: '60s' },
      reason: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const [word, ...more] = positionals;
  if (word === undefined || more.length > 0) throw new UsageError('intent add takes one WHAT');
  const { json, reason } = values;
  if (reason !== undefined && reason.length > MOST_REASON) {
    throw new UsageError(`--reason has at most ${MOST_REASON} characters`);
  }
  const what = parseWhat(word);
  const inMs = Math.ceil(parseDuration('--deadline', values.deadline));
  try {
    const target = { ...values, inherited: false };
    const { identity, intentLog } = await findMachine('intent add', undefined, target);
    if (identity === null || isAlive(identity) === 'dead') {
      throw new NoSuchMachine('the process has ended');
    }
    const log = new IntentLog(intentLog);
    const intent = {
      ...{ identity, what, why: reason ?? null },
      deadline: new Date(Date.now() + inMs),
    };
    const id = await log.append(intent).finally(() => log.close());
    const line = json ? toJsonLine({ event: 'intent', id, ...intent }) : id;
    process.stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof NoSuchMachine)) throw error;
    process.stderr.write(`exitwatch: ${escapeText(error.message)}\n`);
    return EXIT_NO_SUCH_PROCESS;
  }
}

/** `exitwatch intent settle`; resolves with the exit code. */
export async function intentSettleCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: LOG_OPTIONS,
  });
  const [id, outcome, ...more] = positionals;
  if (id === undefined || outcome === undefined || more.length > 0) {
    throw new UsageError('intent settle takes ID and OUTCOME');
  }
  if (!OUTCOMES.includes(outcome)) {
    throw new UsageError(
      `OUTCOME is one of ${OUTCOMES.join(', ')}; not ${JSON.stringify(outcome)}`,
    );
  }
  const path = logOf(values);
  const intents: Intent[] = await readIntents(path);
  if (!intents.some((intent) => intent.id === id)) {
    process.stderr.write(
      `exitwatch: there is no intent ${escapeText(id)} in ${escapeText(path)}\n`,
    );
    return EXIT_NO_SUCH_PROCESS;
  }
  const log = new IntentLog(path);
  await log.settle(id, outcome as IntentOutcome).finally(() => log.close());
  return 0;
}

function logOf(values: { 'intent-log'?: string | undefined; 'state-dir'?: string | undefined }) {
  const { 'intent-log': path, 'state-dir': stateDir } = values;
  const log = path ?? (stateDir === undefined ? undefined : intentLogPath(stateDir));
  if (log === undefined) {
    throw new UsageError('intent settle takes --intent-log FILE or --state-dir DIR');
  }
  return log;
}

function parseWhat(word: string): ControlName | SignalName {
  if (CONTROLS.includes(word)) return word as ControlName;
  const upper = word.toUpperCase();
  const signal = (upper.startsWith('SIG') ? upper : `SIG${upper}`) as SignalName;
  if (signalNumber(signal) > 0) return signal;
  throw new UsageError(`WHAT is ${CONTROLS.join(', ')} or a signal; not ${JSON.stringify(word)}`);
}
