import { ExitwatchError } from '../../common/errors.js';
import type { StopResult, StopWait } from '../../process/index.js';
import { guestAgentDriver, qmpDriver, VmControl, type VmDriver } from '../../vm/index.js';
import { parseDuration } from '../args/duration.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';
import {
  findMachine,
  MACHINE_HELP,
  MACHINE_OPTIONS,
  NoSuchMachine,
  type Machine,
} from '../args/vm-machine.js';
import { refusal } from '../output/error-text.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_NO_SUCH_PROCESS, EXIT_TIMEOUT } from '../output/exit-codes.js';
import { StopProgress } from '../output/stop-progress.js';

import { describeStopped } from './stop.js';

/** What can be requested of a virtual machine. */
type Request = 'powerdown' | 'quit' | 'stop' | 'kill';

const SYNOPSIS = (request: Request) => `
Usage: exitwatch vm ${request} NAME|--pid N|--pidfile FILE [OPTION]…

${MACHINE_HELP}
`;

const END = `  --json             prints the outcome as a JSON object
  --help             prints this text

On a terminal, stderr shows what the command waits for. Each step is recorded
before it is taken, so the daemon and other readers of the intent log know that
it was not the user.

Exits with 0 if the machine has ended, even if it had ended before; 124 if it is
still running, 127 if there is no such machine, process or pidfile, 125 if it
cannot be asked, 2 for wrong usage.
`;

export const VM_POWERDOWN_HELP = `Asks a guest to shut down, and waits until it has ended. Never uses force.
${SYNOPSIS('powerdown')}  --timeout TIME     gives up if it is still running: 60s (default), 500ms, 5m
${END}
If the socket of the guest agent is known, the agent is asked first. If it does
not answer, or refuses, exitwatch presses the power button over QMP, and says so
on stderr.
`;

export const VM_QUIT_HELP = `Tells a hypervisor to quit, like pulling the plug, and waits until it has ended.
${SYNOPSIS('quit')}  --timeout TIME     gives up if it is still running: 5s (default), 500ms, 5m
${END}`;

export const VM_STOP_HELP = `Stops a virtual machine: asks its guest to shut down, then sends SIGTERM, then
SIGKILL.
${SYNOPSIS('stop')}  --timeout TIME     how long the guest may take: 60s (default), 500ms, 5m
  --kill-after TIME  how long to wait between SIGTERM and SIGKILL: 5s (default)
${END}
Without a socket, or if nobody answers on it, SIGTERM is sent at once.
`;

export const VM_KILL_HELP = `Kills a virtual machine: tells its hypervisor to quit, then sends SIGKILL.
${SYNOPSIS('kill')}${END}`;

export const vmPowerdownCommand = (args: readonly string[]) => request('powerdown', args);
export const vmQuitCommand = (args: readonly string[]) => request('quit', args);
export const vmStopCommand = (args: readonly string[]) => request('stop', args);
export const vmKillCommand = (args: readonly string[]) => request('kill', args);

/** Resolves with the exit code. */
async function request(what: Request, args: readonly string[]): Promise<number> {
  const { name, values, timeoutMs, killAfterMs } = parse(what, args);
  const { json, reason } = values;
  const progress = new StopProgress();
  const options: Options = {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(killAfterMs === undefined ? {} : { killAfterMs }),
    ...(reason === undefined ? {} : { reason }),
    onWait: (wait) => {
      progress.tell(wait);
    },
  };
  let result: StopResult;
  let machine: Machine;
  try {
    machine = await findMachine(`vm ${what}`, name, values);
    result = machine.identity === null ? GONE : await act(what, machine, options);
  } catch (error) {
    if (!(error instanceof NoSuchMachine)) throw refusal(error, undefined);
    process.stderr.write(`exitwatch: ${escapeText(error.message)}\n`);
    return EXIT_NO_SUCH_PROCESS;
  } finally {
    progress.end();
  }
  const line = json
    ? toJsonLine({ event: 'stop', name: machine.name, ...result })
    : `${name === undefined ? '' : `${escapeText(name)}: `}${describeStopped(result)}`;
  process.stdout.write(`${line}\n`);
  for (const { detail } of result.warnings) {
    process.stderr.write(`exitwatch: ${escapeText(detail)}\n`);
  }
  return result.outcome === 'timed-out' ? EXIT_TIMEOUT : 0;
}

/** The result for a machine that was already gone. */
const GONE: StopResult = {
  ...{ outcome: 'already-gone', via: null, exit: null, identity: null },
  ...{ endedBy: null, endedByUs: null, warnings: [] },
};

interface Options {
  timeoutMs?: number;
  killAfterMs?: number;
  reason?: string;
  onWait: (wait: StopWait) => void;
}

function act(what: Request, machine: Machine, options: Options): Promise<StopResult> {
  const { identity, intentLog, qmp, agent } = machine;
  if (identity === null) return Promise.resolve(GONE);
  const isPossible = qmp !== undefined || (what === 'powerdown' && agent !== undefined);
  if (!isPossible && (what === 'powerdown' || what === 'quit')) {
    const sockets = what === 'quit' ? '--qmp SOCKET' : '--agent or --qmp SOCKET';
    throw new UsageError(`vm ${what} requires ${sockets}, or a NAME with such a socket`);
  }
  // An agent cannot stop a hypervisor.
  const driver = what === 'kill' && qmp === undefined ? undefined : driverOf(machine);
  const control = new VmControl({
    ...{ process: { identity }, intentLog },
    ...(driver === undefined ? {} : { driver }),
  });
  const { timeoutMs, killAfterMs, ...common } = options;
  switch (what) {
    case 'powerdown':
      return control.powerDown({ ...common, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    case 'quit':
      return control.quit({ ...common, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    case 'kill':
      return control.kill(common);
    case 'stop':
      return control.stop({
        ...common,
        ...(timeoutMs === undefined ? {} : { powerdownTimeoutMs: timeoutMs }),
        ...(killAfterMs === undefined ? {} : { forceKillAfterDelayMs: killAfterMs }),
      });
  }
}

/** `undefined`: only signals are possible. */
function driverOf({ qmp, agent, owner }: Machine): VmDriver | undefined {
  const pid = owner === undefined ? {} : { pid: owner };
  if (qmp !== undefined) {
    return qmpDriver({
      ...{ socket: qmp, ...pid },
      ...(agent === undefined ? {} : { agent }),
      onFallback: ({ message }) => {
        process.stderr.write(
          `exitwatch: ${escapeText(message)}; pressing the power button instead\n`,
        );
      },
    });
  }
  if (agent === undefined) return undefined;
  const refuse = () => Promise.reject(new ExitwatchError('ERR_EXITWATCH_NO_QMP', NO_QMP));
  return { ...guestAgentDriver({ socket: agent, ...pid }), state: refuse, forceOff: refuse };
}

const NO_QMP = 'its QMP socket is unknown';

function parse(what: Request, args: readonly string[]) {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      ...MACHINE_OPTIONS,
      timeout: { type: 'string' },
      'kill-after': { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const [name, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`vm ${what} takes only one NAME`);
  const { timeout, 'kill-after': killAfter } = values;
  if (timeout !== undefined && what === 'kill')
    throw new UsageError('vm kill does not take --timeout');
  if (killAfter !== undefined && what !== 'stop') {
    throw new UsageError(`vm ${what} does not take --kill-after`);
  }
  const milliseconds = (option: string, text: string | undefined) =>
    text === undefined ? undefined : Math.ceil(parseDuration(option, text));
  return {
    ...{ name, values },
    timeoutMs: milliseconds('--timeout', timeout),
    killAfterMs: milliseconds('--kill-after', killAfter),
  };
}
