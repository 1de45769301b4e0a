const HIDDEN = '***';

/** Names whose values are secret: `--db-password`, `API_KEY`, `accessToken`. */
const SECRET =
  'pass(?:word|wd|phrase|code)?|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|auth(?:orization)?|credentials?|cookie|session[-_]?id|signature|bearer';
// `--author` and `--passenger` are none.
const NAME = `[\\w.-]*(?:${SECRET})s?(?![a-z])[\\w.-]*`;

/** `--password=x`, `PASSWORD=x`, `"token": "x"`, `Authorization: Bearer x`. */
const ASSIGNED = new RegExp(
  `((?:^|[\\s'"{,?&;-])["']?${NAME}["']?\\s*[=:]\\s*["']?)[^\\s"'&,;}][^"'&,;}]*`,
  'gi',
);

/** `--password x`: the next argument. */
const OPTION = new RegExp(`^--?${NAME}$`, 'i');

/** `scheme://user:x@host`. */
const IN_URL = /(\b[a-z][\w+.-]*:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi;

/** Options of these programs whose value is attached: `mysql -px`, `curl -u user:x`. */
const ATTACHED: readonly [program: RegExp, option: RegExp][] = [
  [/^(?:mysql|mariadb)/, /^(-p).+/],
  [/^sshpass$/, /^(-p).+/],
  [/^(?:ldap\w+)$/, /^(-w).+/],
  [/^redis-cli$/, /^(-a).+/],
];

/** Options of these programs whose next argument is secret. */
const FOLLOWED: readonly [program: RegExp, option: RegExp][] = [
  [/^(?:curl|wget)$/, /^(?:-u|--user|--proxy-user|-U)$/],
  [/^sshpass$/, /^-p$/],
  [/^(?:ldap\w+)$/, /^-w$/],
  [/^redis-cli$/, /^-a$/],
  [/^openssl$/, /^-(?:pass|passin|passout|k|K)$/],
  [/^(?:docker|podman)$/, /^-p$/],
];

/**
 * Hides what is probably secret in the arguments of a process: values of options and variables whose
 * names speak of passwords, tokens, keys and the like, passwords in URLs, and where some well-known
 * programs take a password. It knows names, not secrets: a password that nothing announces remains.
 *
 * @example
 *   new ExitMonitor({ scope: 'all', commandLines: redactSecrets });
 *
 * @param more what else to hide: the first group of each match, or all of it
 */
export function redactSecrets(args: readonly string[], more: readonly RegExp[] = []): string[] {
  const program = (args[0] ?? '').replace(/^.*\//s, '').replace(/^-/, '');
  const attached = ATTACHED.filter(([programs]) => programs.test(program));
  const followed = FOLLOWED.filter(([programs]) => programs.test(program));
  let isSecret = false;
  return args.map((arg) => {
    if (isSecret) {
      isSecret = false;
      if (!/^--?[a-z]/i.test(arg)) return HIDDEN;
    }
    isSecret = OPTION.test(arg) || followed.some(([, option]) => option.test(arg));
    const option = attached.find(([, pattern]) => pattern.test(arg));
    const shown = option === undefined ? arg : arg.replace(option[1], `$1${HIDDEN}`);
    const hidden = shown.replace(IN_URL, `$1${HIDDEN}`).replace(ASSIGNED, `$1${HIDDEN}`);
    return more.reduce(hideMatches, hidden);
  });
}

function hideMatches(text: string, pattern: RegExp): string {
  return text.replace(pattern, (match: string, ...groups: unknown[]) => {
    const [first] = groups;
    // Without a group, the first is the match's position.
    return typeof first === 'string' ? match.replace(first, () => HIDDEN) : HIDDEN;
  });
}
