import { ask } from '../../supervise/control/control-client.js';
import { revivedView } from '../../supervise/control/revive-view.js';
import { reviveStory } from '../../supervise/ends/service-story.js';
import { parseInteger } from '../args/integer.js';
import { parseArguments } from '../args/parse-arguments.js';
import { STATE_DIR_OPTION, STATE_DIR_HELP, askedDir } from '../args/supervisor-option.js';
import { UsageError } from '../args/usage-error.js';
import { toJsonLine } from '../output/escape.js';
import { describeService, fold, tellServiceStory } from '../output/service-text.js';
import { columnsOf } from '../output/terminal-text.js';

const FEW = 3;
const INDENT = 11;

export const SERVICE_WHY_HELP = `Tells how a service ended, who ended it, and why it was started again or not:
the last end at the bottom.

Usage: exitwatch service why NAME [OPTION]…

  --last N, -n N   how many ends (default: ${FEW}; at most 20 are kept)
${STATE_DIR_HELP}
  --json           prints one JSON object per line
  --help           prints this text

Exits with 0; with 127 if there is no such service, 125 if no supervisor answers,
2 for wrong usage.
`;

/** `exitwatch service why`; resolves with the exit code. */
export async function serviceWhyCommand(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      ...STATE_DIR_OPTION,
      last: { type: 'string', short: 'n' },
      json: { type: 'boolean', default: false },
    },
  });
  const [name, ...more] = positionals;
  if (name === undefined || more.length > 0) throw new UsageError('service why requires one NAME');
  const last = values.last === undefined ? FEW : parseInteger('--last', values.last);
  const answer = await ask(askedDir(values), 'story', { name });
  const found = answer.stories.flatMap((each) => reviveStory(each) ?? []);
  const stories = last === 0 ? [] : found.slice(-last);
  const service = revivedView(answer.service);
  if (values.json) {
    for (const story of stories) process.stdout.write(`${toJsonLine(story)}\n`);
    process.stdout.write(`${toJsonLine({ event: 'service', ...service })}\n`);
    return 0;
  }
  const columns = columnsOf(process.stdout);
  for (const story of stories) {
    process.stdout.write(`${fold(tellServiceStory(story), columns, INDENT)}\n`);
  }
  process.stdout.write(`${fold(describeService(service, new Date()), columns, INDENT)}\n`);
  return 0;
}
