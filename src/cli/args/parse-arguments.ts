import { parseArgs, type ParseArgsConfig } from 'node:util';

import { UsageError } from './usage-error.js';

/** Options for which an empty value makes sense; names, paths and times need a value. */
const MAY_BE_EMPTY: readonly string[] = ['reason'];

/**
 * parseArgs() of node:util with our own messages. `strayWord` explains what to do about a word that
 * is not an option, if the command takes only options.
 *
 * @throws UsageError
 */
export function parseArguments<T extends ParseArgsConfig>(
  config: T,
  strayWord = (word: string) => `${JSON.stringify(word)} is no option, and only options are taken`,
): ReturnType<typeof parseArgs<T>> {
  const { args, options } = config;
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
    return parseArgs(config);
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
  if (type === undefined) throw new UsageError(`there is no option ${rawName}`);
  if (type === 'boolean') {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`);
    return;
  }
  if (value === undefined) throw new UsageError(`${rawName} takes a value`);
  if (value === '' && !MAY_BE_EMPTY.includes(name)) {
    throw new UsageError(`${rawName} takes a value, and not an empty one`);
  }
  if (inlineValue !== true && /^-./.test(value)) {
    throw new UsageError(
      `${rawName} takes a value: if ${value} is meant, write ${rawName}=${value}`,
    );
  }
}
