import { HIDDEN } from './secret-names.js';
import { hideInText, isText, WordRules } from './secret-options.js';
import { hideInUrls } from './secret-urls.js';
import { hideValues } from './secret-values.js';

/** The last argument ends so if there was more. */
export const CUT = '…';

/**
 * Hides what is probably secret in the arguments of a process: values of options and variables whose
 * names speak of passwords, tokens, keys and the like, passwords in URLs and addresses of proxies, and
 * where some well-known programs take a password, also behind `sudo` or in what a shell is to run. It
 * knows names, not secrets: a password that nothing announces remains. What it is in doubt about, it
 * hides.
 *
 * @example
 *   new ExitMonitor({ scope: 'all', commandLines: redactSecrets });
 *
 * @param more what else to hide in each argument: the first group of each match, or all of it
 */
export function redactSecrets(args: readonly string[], more: readonly RegExp[] = []): string[] {
  const rules = new WordRules();
  const patterns = more.map(({ source, flags }) => {
    return new RegExp(source, [...new Set(`${flags}gd`)].join(''));
  });
  return args.map((arg, at) => {
    const isCut = at === args.length - 1 && arg.endsWith(CUT);
    const hidden = hideArgument(isCut ? arg.slice(0, -CUT.length) : arg, rules, isCut);
    return patterns.reduce(hideMatches, isCut ? `${hidden}${CUT}` : hidden);
  });
}

function hideArgument(arg: string, rules: WordRules, isCut: boolean): string {
  const shown = isText(arg) ? hideInText(arg, rules) : rules.hide(arg);
  return hideValues(hideInUrls(shown, isCut), isCut);
}

/** @param pattern with the flags g and d */
function hideMatches(text: string, pattern: RegExp): string {
  let shown = '';
  let from = 0;
  for (const { indices } of text.matchAll(pattern)) {
    const [begin, end] = indices?.[1] ?? indices?.[0] ?? [from, from];
    if (begin < from || end === begin) continue;
    shown += text.slice(from, begin) + HIDDEN;
    from = end;
  }
  return shown + text.slice(from);
}
