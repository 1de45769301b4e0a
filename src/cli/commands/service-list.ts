import { ask } from '../../supervise/control/control-client.js';
import type { ServiceView } from '../../supervise/control/protocol.js';
import { revivedView } from '../../supervise/control/revive-view.js';
import { parseArguments } from '../args/parse-arguments.js';
import { STATE_DIR_OPTION, STATE_DIR_HELP, askedDir } from '../args/supervisor-option.js';
import { escapeText, toJsonLine } from '../output/escape.js';
import { EXIT_NO_SUCH_PROCESS } from '../output/exit-codes.js';
import { serviceTable } from '../output/service-text.js';
import { columnsOf } from '../output/terminal-text.js';

export const SERVICE_LIST_HELP = `Prints the services that "exitwatch supervise" keeps running.

Usage: exitwatch service list [NAME]… [OPTION]…

${STATE_DIR_HELP}
  --json           prints one JSON object per line
  --help           prints this text

UPTIME is the age of its process, STARTS how often it was started again.

Exits with 0; with 127 if there is no service of this NAME, 125 if no supervisor
answers, 2 for wrong usage.
`;

/** `exitwatch service list`; resolves with the exit code. */
export async function serviceListCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: { ...STATE_DIR_OPTION, json: { type: 'boolean', default: false } },
  });
  const { supervisor, services } = await ask(askedDir(values), 'list', {});
  const views = services.map(revivedView);
  const found =
    positionals.length === 0 ? views : views.filter(({ name }) => positionals.includes(name));
  for (const warning of supervisor.warnings) complain(`degraded: ${warning}`);
  if (supervisor.configError !== null) {
    complain(`what runs is not the configuration: ${supervisor.configError}`);
  }
  print(found, values.json);
  const missing = positionals.filter((name) => !views.some((view) => view.name === name));
  for (const name of missing) complain(`there is no service ${JSON.stringify(name)}`);
  return missing.length === 0 ? 0 : EXIT_NO_SUCH_PROCESS;
}

function print(services: readonly ServiceView[], json: boolean): void {
  if (json) {
    for (const view of services)
      process.stdout.write(`${toJsonLine({ event: 'service', ...view })}\n`);
    return;
  }
  const rows = serviceTable(services, new Date(), columnsOf(process.stdout));
  process.stdout.write(`${rows.join('\n')}\n`);
}

function complain(text: string): void {
  process.stderr.write(`exitwatch: ${escapeText(text)}\n`);
}
