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

export const INTENT_ADD_HELP = `Records what you are about to do to a process, and prints the id of this intent.

Usage: exitwatch intent add WHAT --pid N|--pidfile FILE [OPTION]…

  WHAT               powerdown, quit, migrate or save (of a virtual machine), a
                     signal (TERM, KILL, …), or control for anything else
  --pid N            the process that has this pid now
  --pidfile FILE     the process that this pidfile names
  --deadline TIME    how soon it should take effect: 60s (default), 500ms, 5m;
                     exitwatch does not attribute a later end to it
  --reason TEXT      the reason to record
  --intent-log FILE  the file to record it in
  --state-dir DIR    the daemon's state directory: records it in DIR/intents
  --json             prints the intent as a JSON object
  --help             prints this text

Act only after this command has exited with 0: then the intent is on the disk.
Record the outcome with exitwatch intent settle; without that, the intent counts
as carried out until its deadline.

Exits with 0; 127 if there is no such process or pidfile, 125 if the intent
cannot be recorded, 2 for wrong usage.
`;

export const INTENT_SETTLE_HELP = `Records the outcome of an intent.

Usage: exitwatch intent settle ID OUTCOME [OPTION]…

  ID                 the id that exitwatch intent add printed
  OUTCOME            delivered, not-delivered, uncertain (it failed, but may
                     have taken effect), or superseded (the process had already
                     ended)
  --intent-log FILE  the file with the intent
  --state-dir DIR    the daemon's state directory: the intent is in DIR/intents
  --help             prints this text

Exits with 0; 127 if there is no such intent, 125 if the outcome cannot be
recorded, 2 for wrong usage.
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
  if (word === undefined || more.length > 0)
    throw new UsageError('intent add requires exactly one WHAT');
  const { json, reason } = values;
  if (reason !== undefined && reason.length > MOST_REASON) {
    throw new UsageError(`--reason can have at most ${MOST_REASON} characters`);
  }
  if ((values.pid === undefined) === (values.pidfile === undefined)) {
    throw new UsageError('intent add requires exactly one of --pid and --pidfile');
  }
  checkLog(values);
  const what = parseWhat(word);
  const inMs = Math.ceil(parseDuration('--deadline', values.deadline));
  try {
    const target = { ...values, inherited: false };
    const { identity, intentLog } = await findMachine('intent add', undefined, target);
    if (identity === null || isAlive(identity) === 'dead') {
      throw new NoSuchMachine('the process has already ended');
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
    throw new UsageError('intent settle requires ID and OUTCOME');
  }
  if (!OUTCOMES.includes(outcome)) {
    throw new UsageError(
      `OUTCOME must be one of ${OUTCOMES.join(', ')}, not ${JSON.stringify(outcome)}`,
    );
  }
  const path = logOf(values);
  const intents: Intent[] = await readIntents(path);
  if (!intents.some((intent) => intent.id === id)) {
    process.stderr.write(`exitwatch: intent ${escapeText(id)} is not in ${escapeText(path)}\n`);
    return EXIT_NO_SUCH_PROCESS;
  }
  const log = new IntentLog(path);
  await log.settle(id, outcome as IntentOutcome).finally(() => log.close());
  return 0;
}

/** @throws UsageError */
function checkLog(values: { 'intent-log'?: string | undefined; 'state-dir'?: string | undefined }) {
  if (values['intent-log'] !== undefined && values['state-dir'] !== undefined) {
    throw new UsageError('give only one of --intent-log and --state-dir');
  }
}

function logOf(values: { 'intent-log'?: string | undefined; 'state-dir'?: string | undefined }) {
  checkLog(values);
  const { 'intent-log': path, 'state-dir': stateDir } = values;
  const log = path ?? (stateDir === undefined ? undefined : intentLogPath(stateDir));
  if (log === undefined) {
    throw new UsageError('intent settle requires --intent-log FILE or --state-dir DIR');
  }
  return log;
}

function parseWhat(word: string): ControlName | SignalName {
  if (CONTROLS.includes(word)) return word as ControlName;
  const upper = word.toUpperCase();
  const signal = (upper.startsWith('SIG') ? upper : `SIG${upper}`) as SignalName;
  if (signalNumber(signal) > 0) return signal;
  throw new UsageError(
    `WHAT must be ${CONTROLS.join(', ')} or a signal, not ${JSON.stringify(word)}`,
  );
}
