import { ask } from '../../supervise/control/control-client.js';
import type { AppliedConfig } from '../../supervise/control/protocol.js';
import { parseArguments } from '../args/parse-arguments.js';
import { STATE_DIR_OPTION, STATE_DIR_HELP, askedDir } from '../args/supervisor-option.js';
import { escapeText, toJsonLine } from '../output/escape.js';

export const SERVICE_APPLY_HELP = `Reads the configuration again: starts what is new, stops what is missing, and
replaces what differs.

Usage: exitwatch service apply [OPTION]…

  --dry-run        only prints what would change
${STATE_DIR_HELP}
  --json           prints a JSON object
  --help           prints this text

Exits with 0; with 2 for wrong usage and a configuration that cannot be used:
then nothing changes; with 125 if no supervisor answers.
`;

export const SERVICE_UPGRADE_KEEPER_HELP = `Puts the keeper of the installed package in the place of the one that runs. It
keeps its pid and its processes.

Usage: exitwatch service upgrade-keeper [OPTION]…

${STATE_DIR_HELP}
  --json           prints a JSON object
  --help           prints this text

Exits with 0; with 125 if it could not be done: then the old one goes on.
`;

/** `exitwatch service apply`; resolves with the exit code. */
export async function serviceApplyCommand(args: readonly string[]): Promise<number> {
  const { values } = parseArguments({
    args: [...args],
    options: {
      ...STATE_DIR_OPTION,
      'dry-run': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const applied = await ask(askedDir(values), 'apply', { dryRun: values['dry-run'] });
  const text = values.json ? toJsonLine({ event: 'applied', ...applied }) : describe(applied);
  process.stdout.write(`${text}\n`);
  return 0;
}

function describe(applied: AppliedConfig): string {
  const { added, changed, removed, unchanged, differences, restarted, isDryRun } = applied;
  const lines = [
    ...added.map((name) => `+ ${escapeText(name)}`),
    ...removed.map((name) => `- ${escapeText(name)}`),
    ...changed.map((name) => {
      const what = (differences[name] ?? []).map(escapeText).join(', ');
      const how = restarted.includes(name) ? 'is stopped and started' : 'goes on';
      return `~ ${escapeText(name)}: ${what} (${how})`;
    }),
  ];
  const rest = unchanged.length === 0 ? [] : [`  ${unchanged.length} unchanged`];
  if (lines.length === 0)
    return [`nothing ${isDryRun ? 'would change' : 'changes'}`, ...rest].join('\n');
  return [...(isDryRun ? ['what would change:'] : []), ...lines, ...rest].join('\n');
}

/** `exitwatch service upgrade-keeper`; resolves with the exit code. */
export async function serviceUpgradeKeeperCommand(args: readonly string[]): Promise<number> {
  const { values } = parseArguments({
    args: [...args],
    options: { ...STATE_DIR_OPTION, json: { type: 'boolean', default: false } },
  });
  const answer = await ask(askedDir(values), 'upgrade-keeper', {});
  const { pid, version, before } = answer;
  const text = `the keeper (pid ${pid}) is ${version} now; it was ${before}`;
  process.stdout.write(
    `${values.json ? toJsonLine({ event: 'upgraded', ...answer }) : escapeText(text)}\n`,
  );
  return 0;
}
