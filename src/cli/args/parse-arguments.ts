import { parseArgs, type ParseArgsConfig } from 'node:util';

import { UsageError } from './usage-error.js';

/** Options for which an empty value makes sense; names, paths and times need a value. */
const MAY_BE_EMPTY: readonly string[] = ['reason'];

/** Options whose value may be a time before now: `--since -1h`. */
const TIMES: readonly string[] = ['--since', '--until'];

/** Node's parser takes a value that begins with a dash only behind `=`. */
function joinTimes(args: readonly string[]): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const option = joined.at(-1);
    if (option !== undefined && TIMES.includes(option) && /^-\d/.test(arg)) {
      joined[joined.length - 1] = `${option}=${arg}`;
    } else joined.push(arg);
  }
  return joined;
}

/**
 * parseArgs() of node:util with our own messages. `strayWord` explains what to do about a word that
 * is not an option, if the command takes only options.
 *
 * @throws UsageError
 */
export function parseArguments<T extends ParseArgsConfig>(
  config: T,
  strayWord = (word: string) =>
    `unexpected argument ${JSON.stringify(word)}: this command accepts only options`,
): ReturnType<typeof parseArgs<T>> {
  const { options } = config;
  const args = joinTimes(config.args ?? []);
  const { tokens } = parseArgs({
    ...{ args, options, strict: false, allowPositionals: true, tokens: true },
  });
  for (const token of tokens) {
    if (token.kind === 'option') checkOption(token, config.options?.[token.name]?.type);
    else if (token.kind === 'positional' && config.allowPositionals !== true) {
      throw new UsageError(strayWord(token.value));
    }
  }
  try {
    return parseArgs<T>({ ...config, args });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

interface OptionToken {
  name: string;
  rawName: string;
  value: string | undefined;
  inlineValue: boolean | undefined;
}

function checkOption(token: OptionToken, type: 'string' | 'boolean' | undefined): void {
  const { name, rawName, value, inlineValue } = token;
  if (type === undefined) throw new UsageError(`unknown option ${rawName}`);
  if (type === 'boolean') {
    if (value !== undefined) throw new UsageError(`${rawName} does not take a value`);
    return;
  }
  if (value === undefined) throw new UsageError(`${rawName} requires a value`);
  if (value === '' && !MAY_BE_EMPTY.includes(name)) {
    throw new UsageError(`${rawName} requires a value that is not empty`);
  }
  if (inlineValue !== true && /^-./.test(value)) {
    throw new UsageError(
      `${rawName} requires a value; if the value is ${value}, write ${rawName}=${value}`,
    );
  }
}
