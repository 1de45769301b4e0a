const HIDDEN = '***';

/** Names whose values are secret: `--db-password`, `API_KEY`, `accessToken`; `--author` and `--passenger` are none. */
const SECRET_NAME =
  /(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|(?:api|access|account|encryption|private|shared|signing)[-_]?key|auth(?:orization)?|credentials?|cookie|session[-_]?id|signature|bearer)s?(?![a-z])/i;
/** No name is longer; an argument of thousands of such characters must cost no time. */
const MOST_NAME = 200;

const WORD = /[\w.-]+/g;
/** What makes a value of what follows a name. */
const SIGN = /^["']?\s{0,8}[=:]\s{0,8}(["']?)/;

/** `scheme://user:x@host`: up to the last `@` before a space. */
const URL_USER = /\b([a-z][\w+.-]{0,40}:\/\/)(\S+)@/gi;
const LEAST_TOKEN = 20;

/** `-H 'Authorization: Basic x'` and the like, wherever they are. */
const SCHEME = /\b((?:bearer|basic)\s+)[^\s"']{8,}/gi;

type Rule = readonly [program: RegExp, option: RegExp];

/** Options of these programs whose value is attached: `mysql -px`, `curl -uuser:x`. */
const ATTACHED: readonly Rule[] = [
  [/^(?:mysql|mariadb)/, /^(-p).+/],
  [/^(?:sshpass|7z[ar]?)$/, /^(-p).+/],
  [/^ldap\w+$/, /^(-w).+/],
  [/^redis-cli$/, /^(-a).+/],
  [/^curl$/, /^(-[#\da-tv-z]*u).+/i],
  [/^(?:sqlplus|rman|expdp|impdp)$/, /^([\w.-]+\/).+/],
];

/** Options of these programs whose next argument is secret. */
const FOLLOWED: readonly Rule[] = [
  [/^(?:curl|wget)$/, /^(?:-[#\da-z]*u|--user|--proxy-user)$/i],
  [/^(?:sshpass|mongo\w*)$/, /^-p$/],
  [/^ldap\w+$/, /^-w$/],
  [/^redis-cli$/, /^-a$/],
  [/^openssl$/, /^-(?:pass|passin|passout|k|K)$/],
  [/^(?:docker|podman)$/, /^-p$/],
  [/^(?:sqlcmd|bcp|ipmitool|zip|unzip)$/, /^-P$/],
  [/^(?:smbclient|rpcclient|net)$/, /^-U$/],
  [/^(?:plink|pscp|psftp)$/, /^-pw$/],
  [/^lftp$/, /^-u$/],
  [/^(?:mysql|mariadb-?)admin$/, /^password$/],
];

/**
 * Hides what is probably secret in the arguments of a process: values of options and variables whose
 * names speak of passwords, tokens, keys and the like, passwords in URLs, and where some well-known
 * programs take a password, also behind `sudo` or in what a shell is to run. It knows names, not secrets:
 * a password that nothing announces remains. What it is in doubt about, it hides.
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
  return args.map((arg) => {
    const shown = /\s/.test(arg) ? hideInText(arg, rules) : rules.hide(arg);
    const hidden = hideAssigned(shown.replace(URL_USER, hideUser)).replace(SCHEME, `$1${HIDDEN}`);
    return patterns.reduce(hideMatches, hidden);
  });
}

/** What programs and their options say of the words that follow. */
class WordRules {
  #attached: readonly Rule[] = [];
  #followed: readonly Rule[] = [];
  #isSecret = false;

  hide(word: string): string {
    if (this.#isSecret) {
      this.#isSecret = false;
      // An option that has no value after all.
      if (!/^(?:--[a-z]|-[a-z]$)/i.test(word)) return HIDDEN;
    }
    const bare = word.replace(/["'`);]+$/, '');
    const program = bare.replace(/^.*["'`(/]/s, '').replace(/^-/, '');
    this.#attached = of(ATTACHED, program) ?? this.#attached;
    this.#followed = of(FOLLOWED, program) ?? this.#followed;
    const isOption = /^--?[\w.-]+$/.test(word) && isSecretName(word);
    this.#isSecret = isOption || this.#followed.some(([, option]) => option.test(word));
    const option = this.#attached.find(([, pattern]) => pattern.test(word));
    return option === undefined || this.#isSecret ? word : word.replace(option[1], `$1${HIDDEN}`);
  }
}

/** The rules of a program; `null`: it has none. */
function of(rules: readonly Rule[], program: string): readonly Rule[] | null {
  const found = rules.filter(([programs]) => programs.test(program));
  return found.length === 0 ? null : found;
}

/** Of a line for a shell, for example. An argument of its own may still follow. */
function hideInText(text: string, outer: WordRules): string {
  const whole = outer.hide(text);
  if (whole !== text) return whole;
  const inner = new WordRules();
  return text
    .split(/(\s+)/)
    .map((part, at) => (at % 2 === 1 || part === '' ? part : inner.hide(part)))
    .join('');
}

function isSecretName(name: string): boolean {
  return name.length <= MOST_NAME && SECRET_NAME.test(name);
}

/** `--password=x`, `PASSWORD=x`, `"token": "x"`, `Authorization: Bearer x`, `--set=auth.password=x`. */
function hideAssigned(text: string): string {
  let shown = '';
  let from = 0;
  for (const { 0: name, index } of text.matchAll(WORD)) {
    const end = index + name.length;
    if (index < from) continue; // it is hidden already
    const [sign, quote = ''] = SIGN.exec(text.slice(end, end + 20)) ?? [];
    if (sign === undefined || !isSecretName(name)) continue;
    const begin = end + sign.length;
    const length = lengthOfValue(text.slice(begin), quote, isWhole(text, name, index, sign));
    if (length === 0) continue;
    shown += text.slice(from, begin) + HIDDEN;
    from = begin + length;
  }
  return shown + text.slice(from);
}

/** An option, a header or a variable that is all of an argument. */
function isWhole(text: string, name: string, index: number, sign: string): boolean {
  if (index > 0) return false;
  return name.startsWith('-') || sign.includes(':') || !/\s/.test(text);
}

function lengthOfValue(rest: string, quote: string, isWhole: boolean): number {
  if (quote !== '') {
    const end = rest.indexOf(quote);
    return end === -1 ? rest.length : end;
  }
  if (isWhole) return rest.length;
  return (/^[^\s"'][^"'&,;}]*/.exec(rest) ?? [''])[0].length;
}

function hideUser(found: string, scheme: string, user: string): string {
  const at = user.indexOf(':');
  const slash = user.indexOf('/');
  if (at === -1) {
    // A token instead of a name, or an @ in a path.
    return slash === -1 && user.length >= LEAST_TOKEN ? `${scheme}${HIDDEN}@` : found;
  }
  const isPath = (slash !== -1 && slash < at) || /^:\d{1,5}\//.test(user.slice(at));
  return isPath ? found : `${scheme}${user.slice(0, at)}:${HIDDEN}@`;
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
