import { HIDDEN, isKeyName, isSecretName, looksLikeKey } from './secret-names.js';

type Rule = readonly [program: RegExp, option: RegExp];

const MYSQL = /^(?:mysql|mariadb|mycli)/;
const LDAP = /^ldap\w+$/;
const ZIP = /^(?:un)?zip$/;
const SMB = /^(?:smb\w+|rpcclient|net)$/;
const SNMP = /^snmp\w+$/;
const MSSQL = /^(?:sqlcmd|osql|isql|tsql|sqsh|bcp|ipmitool)$/;
/** `-p` of others, such as `docker run`, is a port. */
const LOGIN = /^(?:docker|podman|buildah|skopeo|nerdctl|helm|oras|crane|az|oc|cf) login$/;

/** Options of these programs whose value is attached: `mysql -px`, `curl -uuser:x`. */
const ATTACHED: readonly Rule[] = [
  [MYSQL, /^(-[ABCEGHLNQWXbcfijnqrstvw]*p).+/s],
  [/^(?:sshpass|7z\w?|mongo\w*|rdesktop|hdbsql)$/, /^(-p).+/s],
  [/^(?:un)?rar$/, /^(-h?p).+/s],
  [LOGIN, /^(-p).+/s],
  [LDAP, /^(-[ACLMNQZnuvx]*w).+/s],
  [/^redis-cli$/, /^(-a).+/s],
  [/^curl$/, /^(-[#\da-wyzA-Z]*x[^\s:@/]+:)(?!\/).+(?=@)/s],
  [/^curl$/, /^(-[#\da-tv-z]*u).+/is],
  [/^(?:http|xh)$/, /^(-a).+/s],
  [/^lftp$/, /^(-u).+/s],
  [ZIP, /^(-[\dA-OQ-Za-z]*P).+/s],
  [MSSQL, /^(-P).+/s],
  [SMB, /^((?:-U|--user=)[^%]*%).+/s],
  [SNMP, /^(-[AXc]).+/s],
  [/^ssh-keygen$/, /^(-[NP]).+/s],
  [/^(?:wl|x|sdl-?)freerdp\d?$/, /^(\/g?p:).+/s],
  [/^(?:kubectl|oc)$/, /^(--from-literal=[^=]+=).+/s],
  [/^(?:sqlplus|sqlldr|rman|expdp|impdp|exp|imp)$/, /^((?:userid=)?[\w.-]+\/).+/s],
];

/** Options of these programs whose next argument is secret. */
const FOLLOWED: readonly Rule[] = [
  [/^(?:curl|wget)$/, /^(?:-[#\da-z]*u|--user|--proxy-user)$/i],
  [/^(?:sshpass|mongo\w*|rdesktop|hdbsql|cqlsh|beeline|rabbitmqadmin|couchbase-cli)$/, /^-p$/],
  [/^ncftp\w*$/, /^-p$/],
  [LOGIN, /^-p$/],
  [LDAP, /^-[ACLMNQZnuvx]*w$/],
  [/^redis-cli$/, /^(?:-a|auth2?|requirepass|masterauth)$/i],
  [/^(?:http|xh)$/, /^-a$/],
  [/^openssl$/, /^-(?:pass|passin|passout|k|K)$/],
  [ZIP, /^-[\dA-OQ-Za-z]*P$/],
  [MSSQL, /^-P$/],
  [/^mosquitto_\w+$/, /^-P$/],
  [SMB, /^-U$/],
  [SNMP, /^-[AXc]$/],
  [/^ssh-keygen$/, /^-[NP]$/],
  [/^(?:plink|pscp|psftp)$/, /^-pw$/],
  [/^pdf\w+$/, /^(?:-[ou]pw|(?:input|owner|user)_pw)$/],
  [/^swaks$/, /^-ap$/],
  [/^lftp$/, /^-u$/],
  [/^(?:mysql|mariadb-?)admin$/, /^password$/],
  [/^(?:nmcli|pppd)$/, /^(?:password|[\w.-]*psk)$/],
  [/^(?:kubectl|oc)$/, /^--from-literal$/],
];

/** Since Redis 6 a user may come first: `AUTH user x`. */
const PAIRED = /^auth2?$/i;

/** Options and settings whose next argument is the address of a proxy, and such an address with a password. */
const PROXY = /^(?:-[#\da-zA-Z]*x|[\w.-]*proxy|--socks[\w-]*)$/i;
const PROXY_USER = /^([^\s:@/]+:)(?!\/)\S+(?=@)/;

/** `git config x.password y`: a name among these programs' words, then its value. */
const CONFIG = /^(?:git|npm|pnpm|yarn|pip3?|aws|composer|poetry|gem|bundle) config(?:ure)?$/;

const SUBCOMMAND = /^(?:login|config|configure)$/;

/** What may stand before the name of a program in text for a shell, or behind it. */
const AROUND = /[|;&(){}[\]<>`"'=$!,\\]+/;

/** Where text for a shell ends a command, and what looks like it: `&>file`, `>&2`, `>|file`. */
const SEPARATED_BEFORE = /^(?:[;|]|&(?!>))/;
const SEPARATED_BEHIND = /(?<![<>])[;|&]$/;

/** Where a line may go on in the next one: `-s \`, an option, an element of a list. */
const GOES_ON = /[\\,]$|^["']?-/;

/** Where text for a shell opens something, before an option or its value. */
const OPENING = /^["'`([{\\]*/;
/** An option without a value, and where text for a shell closes something. */
const BARE = /^([\w.-]+)[\\"'`)\]},;]*$/;
const CLOSING = /[\\"'`)\]},;]{0,8}$/;

/** Longer ones are no names of programs. */
const MOST_PROGRAM = 40;

/** What the next word is, or may be. */
type Next = 'shown' | 'secret' | 'two secrets' | 'key' | 'proxy';

function isSecret(next: Next): boolean {
  return next === 'secret' || next === 'two secrets';
}

/** What programs and their options say of the words that follow. */
export class WordRules {
  /** The last one that could be told to log in or to configure something. */
  #program = '';
  #attached: readonly Rule[] = [];
  #followed: readonly Rule[] = [];
  #isConfig = false;
  #next: Next = 'shown';

  /** What follows is for another program. */
  endCommand(): void {
    this.#program = '';
    this.#attached = [];
    this.#followed = [];
    this.#isConfig = false;
    this.#next = 'shown';
  }

  /** A word as it may be shown; what it says counts from the next one on. */
  hide(word: string): string {
    const shown = this.#shown(word);
    this.note(word);
    return shown;
  }

  /** A word that is not shown may name a program as well: `-px|curl`. */
  note(word: string): void {
    for (const piece of /\s/.test(word) ? [word] : word.split(AROUND)) {
      const name = piece.slice(piece.lastIndexOf('/') + 1);
      if (name !== '' && name.length <= MOST_PROGRAM) this.#noteProgram(name);
    }
  }

  #shown(word: string): string {
    const opening = OPENING.exec(word)?.[0] ?? '';
    const text = word.slice(opening.length);
    const next = this.#next;
    this.#next = next === 'two secrets' ? 'secret' : 'shown';
    // An option that has no value after all is shown.
    const isOption = /^(?:--[a-z]|-[a-z]$)/i.test(text);
    if (isSecret(next) && !isOption) return HIDDEN;
    if (next === 'key' && looksLikeKey(text.replace(CLOSING, ''))) return opening + HIDDEN;
    if (next === 'proxy' && PROXY_USER.test(text)) {
      return opening + text.replace(PROXY_USER, `$1${HIDDEN}`);
    }
    const bare = BARE.exec(text)?.[1];
    this.#next = bare === undefined ? 'shown' : this.#nextAfter(bare);
    const option = this.#attached.find(([, pattern]) => pattern.test(text));
    if (option === undefined || isSecret(this.#next)) return word;
    return opening + text.replace(option[1], `$1${HIDDEN}`);
  }

  #nextAfter(word: string): Next {
    const isName = word.startsWith('-') || this.#isConfig;
    if (isName && isSecretName(word)) return 'secret';
    if (this.#followed.some(([, option]) => option.test(word))) {
      return PAIRED.test(word) ? 'two secrets' : 'secret';
    }
    if (isName && isKeyName(word)) return 'key';
    return PROXY.test(word) ? 'proxy' : 'shown';
  }

  #noteProgram(name: string): void {
    const program = SUBCOMMAND.test(name) ? `${this.#program} ${name}` : name;
    this.#attached = of(ATTACHED, program) ?? this.#attached;
    this.#followed = of(FOLLOWED, program) ?? this.#followed;
    if (CONFIG.test(program)) this.#isConfig = true;
    if (CONFIG.test(`${name} config`) || LOGIN.test(`${name} login`)) this.#program = name;
  }
}

/** The rules of a program; `null`: it has none. */
function of(rules: readonly Rule[], program: string): readonly Rule[] | null {
  const found = rules.filter(([programs]) => programs.test(program));
  return found.length === 0 ? null : found;
}

/** Arguments of their own within an argument: a line for a shell, or an array in JSON. */
const BETWEEN = /(\s+|(?<=["']),(?=["']))/;

/** Whether an argument may be several ones. */
export function isText(arg: string): boolean {
  return BETWEEN.test(arg);
}

/** Of a line for a shell, for example. An argument of its own may still follow. */
export function hideInText(text: string, outer: WordRules): string {
  const whole = outer.hide(text);
  if (whole !== text) return whole;
  const inner = new WordRules();
  // In which a secret goes on: `-p'my secret'`.
  let quote = '';
  // In which no command ends.
  let around = '';
  const show = (part: string, at: number, parts: readonly string[]) => {
    const wasQuoted = around !== '';
    around = quoteBehind(part, around);
    if (at % 2 === 1) {
      const isLine = part.includes('\n') && !GOES_ON.test(parts[at - 1] ?? '');
      if (isLine && !wasQuoted) inner.endCommand();
      return quote === '' ? part : '';
    }
    if (!wasQuoted && SEPARATED_BEFORE.test(part)) inner.endCommand();
    const shown = shownPart(part);
    if (around === '' && SEPARATED_BEHIND.test(part)) inner.endCommand();
    return shown;
  };
  const shownPart = (part: string) => {
    if (quote !== '') {
      if (part.includes(quote)) quote = '';
      inner.note(part);
      return '';
    }
    if (part === '') return part;
    const shown = inner.hide(part);
    if (shown !== part) quote = openQuote(part);
    return shown;
  };
  return text.split(BETWEEN).map(show).join('');
}

/** The quote that is open behind a word, as a shell takes quotes; `open`: the one before it. */
function quoteBehind(word: string, open: string): string {
  for (const [mark] of word.matchAll(/\\[^]|["'`]/g)) {
    const isEscaped = mark.length > 1 && open !== "'";
    if (isEscaped) continue;
    if (open === '') open = mark;
    else if (mark.endsWith(open)) open = '';
  }
  return open;
}

/** The quote that a word opens and does not close; one at its end closes what has begun before. */
function openQuote(word: string): string {
  let open = '';
  let since = 0;
  for (let at = 0; at < word.length; at++) {
    const char = word.charAt(at);
    if (char === open) open = '';
    else if (open === '' && /["'`]/.test(char)) [open, since] = [char, at];
  }
  return /^["'`)\]};,]*$/.test(word.slice(since)) ? '' : open;
}
