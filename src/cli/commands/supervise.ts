import { resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';

import type { SignalName } from '../../events/wait-status.js';
import { DEFAULT_PINS } from '../../memory/recorder-pins.js';
import { loadConfig } from '../../supervise/config/load-config.js';
import { becomeGuard } from '../../supervise/guard.js';
import { Supervision } from '../../supervise/supervision.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';
import { describeError, exitCodeOf } from '../output/error-text.js';
import { escapeText } from '../output/escape.js';
import { counted } from '../output/service-text.js';
import { SuperviseLines } from '../output/supervise-lines.js';
import { keepServiceAlive, notifyService } from '../service.js';
import { defaultStateDir, superviseDir } from '../supervise-dirs.js';
import { version } from '../version.js';

export const SUPERVISE_HELP = `Keeps the services of a configuration running, and tells why each of them ended.

Usage: exitwatch supervise CONFIG [OPTION]…

  CONFIG           a file in JSON, or a module: see docs/supervise.md
  --state-dir DIR  where to keep it: in DIR/supervise (default: /var/lib/exitwatch;
                   of an ordinary user ~/.local/state/exitwatch)
  --check          only checks CONFIG
  --stop           stops all services when it is asked to end, instead of leaving
                   them running
  --pin-dir DIR    the directory for the recorder, which remembers what ends
                   while this command does not run (default:
                   ${DEFAULT_PINS})
  --json           prints one JSON object per line
  --help           prints this text

When it ends, the services go on, and the next one takes them over. SIGHUP reads
CONFIG again. "exitwatch service" asks it, or tells it what to do.

As the first process of a container, and with a service that has "main", it stops
all services when it is asked to end, or when that service has ended.

Exits with 0 after SIGTERM or SIGINT, or as its main service did; with 125 if DIR
cannot be written, or if another one uses it; with 2 for wrong usage and a CONFIG
that cannot be used.
`;

/** How long a change of the status waits for others. */
const STATUS_MS = 500;

/** What asks us to end. */
const ENDING: readonly SignalName[] = ['SIGTERM', 'SIGINT', 'SIGQUIT'];
/** What is meant for the main service, if there is one. */
const PASSED: readonly SignalName[] = ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'];

/** `exitwatch supervise`; resolves with the exit code. */
export async function superviseCommand(args: readonly string[]): Promise<number> {
  const { config, stateDir, pinDir, json, isCheck, stopsAll } = parse(args);
  const folder = superviseDir(stateDir);
  if (isCheck) return check(config, folder);
  // It runs for as long as the host does, and keeps little alive: a small heap is worth more than a fast one.
  setFlagsFromString('--optimize-for-size');
  const lines = new SuperviseLines(json, process.stdout);
  if (process.pid === 1) {
    // Returns only if it cannot.
    const refusal = becomeGuard(folder, [
      process.execPath,
      ...process.execArgv,
      ...process.argv.slice(1),
    ]);
    lines.warning(null, `nothing keeps this command alive: ${refusal}`);
  }
  const asked = new AskedToEnd();
  const supervision = new Supervision({
    ...{ config, folder, pinDir, version: version() },
    onSignal: (signal) => {
      asked.take(signal);
    },
  });
  lines.listen(supervision);
  asked.listen((signal) => {
    const isReload = signal === 'SIGHUP' && !supervision.hasMain;
    if (isReload) notifyService(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
    void supervision
      .pass(signal)
      .catch((error: unknown) => {
        lines.warning(null, describeError(error));
      })
      .then(() => {
        if (isReload) notifyService('READY=1');
      });
  });
  let rest: (() => void) | undefined;
  const started = supervision.start().then(() => {
    rest = keepServiceAlive();
    notifyService(`READY=1\nSTATUS=${lines.status(supervision)}`);
    tellStatus(supervision, lines);
  });
  const ends = [asked.ended, supervision.mainEnded];
  const failure: unknown = await Promise.race([
    ...ends,
    started.then(() => Promise.race(ends)),
  ]).catch((error: unknown) => error);
  notifyService('STOPPING=1');
  rest?.();
  if (failure !== undefined) {
    await supervision.close();
    process.stderr.write(`exitwatch: ${escapeText(describeError(failure))}\n`);
    return exitCodeOf(failure);
  }
  let status = 0;
  try {
    await started; // it may be asked to end before it has begun
    if (stopsAll || supervision.hasMain || supervision.isGuarded) {
      status = await supervision.finish();
    }
    lines.ended(supervision.running);
  } catch (error) {
    lines.warning(null, describeError(error)); // what runs is not known
  }
  await supervision.close();
  asked.close();
  return status;
}

/** Keeps what systemd shows up to date. */
function tellStatus(supervision: Supervision, lines: SuperviseLines): void {
  let isDue = false;
  const later = () => {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      notifyService(`STATUS=${lines.status(supervision)}`);
    }, STATUS_MS).unref();
  };
  for (const event of ['started', 'exit', 'stopped'] as const)
    supervision.supervisor.on(event, later);
  supervision.on('applied', later);
}

/** The signals for this process, or for the container that it is the supervisor of. */
class AskedToEnd {
  readonly ended: Promise<void>;
  #end: () => void = () => undefined;
  #pass: (signal: SignalName) => void = () => undefined;
  readonly #onSignal = (signal: SignalName) => {
    this.take(signal);
  };

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    for (const signal of [...ENDING, ...PASSED]) process.on(signal, this.#onSignal);
  }

  /** @param pass takes those that do not ask us to end */
  listen(pass: (signal: SignalName) => void): void {
    this.#pass = pass;
  }

  take(signal: SignalName): void {
    if (ENDING.includes(signal)) this.#end();
    else this.#pass(signal);
  }

  close(): void {
    for (const signal of [...ENDING, ...PASSED]) process.off(signal, this.#onSignal);
  }
}

async function check(config: string, folder: string): Promise<number> {
  const { services } = await loadConfig(config, folder);
  process.stdout.write(`${escapeText(config)}: ${counted(services.length, 'service')}\n`);
  return 0;
}

function parse(args: readonly string[]) {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      'state-dir': { type: 'string', default: defaultStateDir() },
      check: { type: 'boolean', default: false },
      stop: { type: 'boolean', default: false },
      'pin-dir': { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const [config, ...more] = positionals;
  if (config === undefined) throw new UsageError('supervise requires a CONFIG');
  if (more.length > 0) throw new UsageError('supervise takes only one CONFIG');
  return {
    ...{ config, stateDir: resolve(values['state-dir']), pinDir: values['pin-dir'] },
    ...{ json: values.json, isCheck: values.check, stopsAll: values.stop },
  };
}
