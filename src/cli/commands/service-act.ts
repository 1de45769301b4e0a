import { ask } from '../../supervise/control/control-client.js';
import type { DoneService } from '../../supervise/control/protocol.js';
import { parseDuration } from '../args/duration.js';
import { parseArguments } from '../args/parse-arguments.js';
import { STATE_DIR_OPTION, STATE_DIR_HELP, askedDir } from '../args/supervisor-option.js';
import { UsageError } from '../args/usage-error.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_FAILED, EXIT_TIMEOUT } from '../output/exit-codes.js';

const TAIL = `${STATE_DIR_HELP}
  --json           prints one JSON object per line
  --help           prints this text

Exits with 0 when it is done; with 124 if it takes longer (it goes on), 125 if
something could not be done, 2 for wrong usage.
`;

const TIMEOUT_HELP = `  --timeout TIME   how long to wait, for example 5m (default: 60s)`;

export const SERVICE_START_HELP = `Starts services, and waits until they run.

Usage: exitwatch service start NAME… [OPTION]…

  --all            all services
${TIMEOUT_HELP}
${TAIL}`;

export const SERVICE_STOP_HELP = `Stops services, and waits until nothing of them is left: for 10 s, or 1.5 times
the grace.

Usage: exitwatch service stop NAME… [OPTION]…

They stay stopped until somebody starts them, also after a reboot.

  --all            all services, in the reverse order of "after"
  --grace TIME     sends SIGKILL after so long, for example 10s, instead of what the
                   configuration says
  --until-reboot   they start again when the machine has booted
  --until-restart  they start again with the next "exitwatch supervise"
${TAIL}`;

export const SERVICE_RESTART_HELP = `Stops services and starts them again, and waits until they run.

Usage: exitwatch service restart NAME… [OPTION]…

  --all            all services, but those that somebody has stopped, and those
                   that have ended for good
${TIMEOUT_HELP}
${TAIL}`;

/** `exitwatch service start`; resolves with the exit code. */
export async function serviceStartCommand(args: readonly string[]): Promise<number> {
  return startOrRestart('start', args);
}

/** `exitwatch service stop`; resolves with the exit code. */
export async function serviceStopCommand(args: readonly string[]): Promise<number> {
  const { names, folder, json, graceMs, until } = parse('stop', args, {
    grace: { type: 'string' },
    'until-reboot': { type: 'boolean', default: false },
    'until-restart': { type: 'boolean', default: false },
  });
  const { services } = await ask(folder, 'stop', {
    names,
    ...(graceMs === undefined ? {} : { graceMs }),
    ...(until === undefined ? {} : { until }),
  });
  return report(services, json);
}

/** `exitwatch service restart`; resolves with the exit code. */
export async function serviceRestartCommand(args: readonly string[]): Promise<number> {
  return startOrRestart('restart', args);
}

async function startOrRestart(verb: 'start' | 'restart', args: readonly string[]): Promise<number> {
  const { names, folder, json, timeoutMs } = parse(verb, args, { timeout: { type: 'string' } });
  const limit = timeoutMs === undefined ? {} : { timeoutMs };
  return report((await ask(folder, verb, { names, ...limit })).services, json);
}

function parse(
  verb: string,
  args: readonly string[],
  more: Record<string, { type: 'string' } | { type: 'boolean'; default: false }> = {},
) {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      ...STATE_DIR_OPTION,
      ...more,
      all: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  if (values.all === positionals.length > 0) {
    throw new UsageError(`service ${verb} requires the NAME of a service, or --all`);
  }
  const given: Record<string, unknown> = values;
  const duration = (option: 'grace' | 'timeout') => {
    const text = given[option];
    return typeof text === 'string' ? Math.ceil(parseDuration(`--${option}`, text)) : undefined;
  };
  return {
    names: values.all ? null : positionals,
    folder: askedDir(values),
    json: values.json,
    graceMs: duration('grace'),
    timeoutMs: duration('timeout'),
    until: untilOf(given['until-reboot'] === true, given['until-restart'] === true),
  };
}

function untilOf(isReboot: boolean, isRestart: boolean): 'reboot' | 'close' | undefined {
  if (isReboot && isRestart) {
    throw new UsageError('service stop takes --until-reboot or --until-restart, not both');
  }
  if (isRestart) return 'close';
  return isReboot ? 'reboot' : undefined;
}

function report(services: readonly DoneService[], json: boolean): number {
  for (const service of services) {
    const { name, phase, pid, error } = service;
    if (json) {
      process.stdout.write(`${toJsonLine({ event: 'done', ...service })}\n`);
    } else if (error === null) {
      const who = pid === null ? '' : `, pid ${pid}`;
      process.stdout.write(`${escapeText(name)} is ${phase}${who}\n`);
    } else {
      process.stderr.write(`exitwatch: ${escapeText(`${name}: ${error.message}`)}\n`);
    }
  }
  const codes = services.flatMap(({ error }) => error?.code ?? []);
  if (codes.length === 0) return 0;
  return codes.every((code) => code === 'ERR_EXITWATCH_TIMEOUT') ? EXIT_TIMEOUT : EXIT_FAILED;
}
