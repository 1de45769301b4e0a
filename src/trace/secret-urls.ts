import { HIDDEN } from './secret-names.js';

/** Also as JSON may write it: `https:\/\/`. */
const SCHEME = /\b[a-z][\w+.-]{0,40}:\\?\/\\?\//gi;

/** As long are user names that are tokens. */
const LEAST_TOKEN = 20;

/** What services want as the password of a user name that is a token. */
const NO_PASSWORD = /^(?:x|x-oauth-basic)?$/;

/** Behind a host: its port, then what is no password any more. */
const PORT = /^:\d{1,5}(?:\\?\/|[?#])/;

/** `https%3A%2F%2Fuser%3Ax%40host` */
const ENCODED = /(%3A%2F%2F[^\s%&/]{0,100}%3A)[^\s&]{1,256}(?=%40)/gi;

/** Oracle's own: `jdbc:oracle:thin:scott/x@host`. */
const ORACLE = /(\bjdbc:oracle:\w{1,10}:[^\s/@]{1,100}\/)[^\s@]+/gi;

/** Addresses of proxies need no scheme: `HTTPS_PROXY=user:x@host`, `--proxy=user:x@host`. */
const PROXY =
  /(proxy["']?\s{0,4}[=:]\s{0,4}["']?[^\s:@/"'=]{1,100}:)(?!\\?\/)[^\s"']{1,256}(?=@)/gi;

/** Of Azure: what has the signature may read. */
const SIGNED = /([?&]sig=)[^\s&"'#]+/gi;

/** `?key=` and `?code=` have keys of interfaces, or anything else, which is shorter. */
const QUERY_KEY = /([?&](?:key|code)=)[^\s&"'#]{20,}/gi;

/**
 * Hides the passwords of URLs, wherever they are in a text, and tokens in place of user names.
 *
 * @param isCut the text goes on: what its end has may be the beginning of a secret
 */
export function hideInUrls(text: string, isCut: boolean): string {
  const words = text.split(/(\s+)/);
  const last = words.length - 1;
  return words
    .map((word, at) => hideUsers(word, isCut && at === last))
    .join('')
    .replace(ENCODED, `$1${HIDDEN}`)
    .replace(ORACLE, `$1${HIDDEN}`)
    .replace(PROXY, `$1${HIDDEN}`)
    .replace(SIGNED, `$1${HIDDEN}`)
    .replace(QUERY_KEY, `$1${HIDDEN}`);
}

function hideUsers(word: string, isCut: boolean): string {
  const at = word.lastIndexOf('@');
  if (!isCut) return at === -1 ? word : hideBefore(word, at);
  // An @ without a path behind the host may still be one of the password.
  if (!/[/?#]/.test(word.slice(at + 1))) return hideBefore(word, word.length);
  const rest = word.slice(at + 1);
  return hideBefore(word.slice(0, at + 1), at) + hideBefore(rest, rest.length);
}

/** Of a word with URLs; `at`: where its last user part ends. */
function hideBefore(word: string, at: number): string {
  let shown = '';
  let from = 0;
  for (const { 0: scheme, index } of word.matchAll(SCHEME)) {
    const begin = index + scheme.length;
    if (begin >= at) break;
    if (begin < from) continue; // it is hidden already
    const secret = secretOf(word.slice(begin, at));
    if (secret === null) continue;
    shown += word.slice(from, begin + secret.begin) + HIDDEN;
    from = begin + secret.end;
  }
  return shown + word.slice(from);
}

/** Where the secret is in what is between `scheme://` and the last `@`; `null`: nowhere. */
function secretOf(text: string): { begin: number; end: number } | null {
  const colon = text.indexOf(':');
  const path = text.search(/[/?#]/);
  const isPath = path !== -1 && path < colon;
  // An address of IPv6 has colons.
  if (colon !== -1 && !isPath && !text.startsWith('[') && !PORT.test(text.slice(colon))) {
    const isToken = colon >= LEAST_TOKEN && NO_PASSWORD.test(text.slice(colon + 1));
    return { begin: isToken ? 0 : colon + 1, end: text.length };
  }
  // A token instead of a name, or an @ in a path.
  const end = path === -1 ? text.length : text.slice(0, path).lastIndexOf('@');
  return end >= LEAST_TOKEN ? { begin: 0, end } : null;
}
