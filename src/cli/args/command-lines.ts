import { redactSecrets } from '../../trace/redact-secrets.js';

import { UsageError } from './usage-error.js';

/** The options that ask for command lines. */
export const COMMAND_LINE_OPTIONS = {
  'command-lines': { type: 'boolean', default: false },
  redact: { type: 'string', multiple: true, default: [] as string[] },
} as const;

/** Help text for {@link COMMAND_LINE_OPTIONS}. */
export const COMMAND_LINE_HELP = `  --command-lines  also shows the arguments of processes, and of those who end
                 them, without what is probably a password, a token or a key
  --redact REGEX hides more in each argument (may be repeated): the first group
                 of each match, or all of it`;

/**
 * What the library's `commandLines` gets.
 *
 * @throws UsageError
 */
export function parseCommandLines(values: {
  'command-lines': boolean;
  redact: readonly string[];
}): false | ((args: string[]) => string[]) {
  const more = values.redact.map(parsePattern);
  if (!values['command-lines'] && more.length === 0) return false;
  return (args) => redactSecrets(args, more);
}

function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text, 'gu');
  } catch {
    throw new UsageError(`--redact ${JSON.stringify(text)} is not a valid regular expression`);
  }
}
