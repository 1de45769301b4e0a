import { HIDDEN, isKeyName, isSecretName, looksLikeKey } from './secret-names.js';

const WORD = /[\w.-]+/g;

/** In JSON in text for a shell they have backslashes, in a URL they are encoded. */
const QUOTE = String.raw`(?:\\{0,7}["'\x60]|%2[27])`;
/** Of strings in Python, in SQL and in the shell: `b'x'`, `N'x'`, `$'x'`. */
const OPENED = `[benru$]{0,2}${QUOTE}`;

/** What makes a value of what follows a name, and the quote that the value begins with. */
const SIGN = new RegExp(
  `^(?:${QUOTE}?\\s{0,32}(?:=>|[:+?!]?={1,3}|:(?!:)|%3[AD])\\s{0,32}` +
    `|${QUOTE}?\\s{0,8},\\s{0,8}${QUOTE}?value${QUOTE}?\\s{0,8}[=:]\\s{0,8}` +
    // SQL: PASSWORD 'x', PASSWORD('x')
    `|\\s{0,8}\\(\\s{0,8}(?=${OPENED})|\\s{1,8}(?=${OPENED}))(?:[benru$]{0,2}(${QUOTE}))?`,
  'i',
);
const MOST_SIGN = 120;

/** What has variables that are set as the shell does it: `--env=PASSWORD=x`. */
const ENVIRONMENT = /(?:^|\s)--?(?:env|e|build-arg)=$/;
const MOST_ENVIRONMENT = 12;

/** Up to what ends a value in a list of them: `password=x;user=y`. */
const LISTED = /^[^\s"'](?:\\[&,;}]|[^"'&,;}])*/;
/** What is before and behind a value in a list, whose values may have blanks. */
const LIST_BEFORE = /=[^;&]{0,100}[;&]\s{0,8}$/;
const LIST_BEHIND = /^[;&]\s{0,8}[\w.-][\w .-]{0,60}=/;
const MOST_LIST = 120;
/**
 * A word of the shell: a quote before its end opens a part, another one closes what is around it.
 *
 * @param ends what else ends it
 */
const wordOfShell = (ends: string, within = '(?!)') =>
  new RegExp(
    String.raw`^(?:\$\([^)]*\)?|[^\s"'\x60\\${ends}]|${within}|\\[^"']?` +
      String.raw`|(["'\x60])(?![\s"'\x60)\]};,]|$)(?:\\[^]|(?!\1)[^])*\1?)*`,
  );
/** Of an option, which may be in text that is not for a shell. */
const OPTION_WORD = wordOfShell('');
/** Of a variable, whose value may have separators that end no command. */
const ASSIGNED_WORD = wordOfShell(';&|', String.raw`[;&|](?![\s;&|]|$)`);

const IDENTIFIED =
  /\bidentified\s{1,8}(?:with\s{1,8}\S{1,64}\s{1,8})?(?:by|as)\s{1,8}(?:(?:password|values)\s{1,8})?(["']?)/gi;

/** QEMU: `secret,id=s,data=x` and `{"qom-type":"secret","id":"s","data":"x"}` */
const OBJECT = /(\bsecret,(?:[^\s,]{0,100},){0,8}data=)[^\s,]+/g;
const JSON_OBJECT = /("qom-type"\s{0,8}:\s{0,8}"secret[^}]{0,400}?"data"\s{0,8}:\s{0,8}")[^"]+/g;

/** `-H 'Authorization: Basic x'` and the like, wherever they are. */
const SCHEME = /\b((?:bearer|basic)\s+)[^\s"']{8,}/gi;
const CUT_SCHEME = /\b((?:bearer|basic)\s+)[^\s"']+$/i;

/**
 * Hides values that have a name: `--password=x`, `PASSWORD=x`, `"token": "x"`, `--set=auth.password=x`,
 * `Authorization: Bearer x`, `PASSWORD 'x'`.
 *
 * @param isCut the text goes on: what its end has may be the beginning of a secret
 */
export function hideValues(text: string, isCut: boolean): string {
  const shown = hideIdentified(hideNamed(text))
    .replace(OBJECT, `$1${HIDDEN}`)
    .replace(JSON_OBJECT, `$1${HIDDEN}`)
    .replace(SCHEME, `$1${HIDDEN}`);
  return isCut ? shown.replace(CUT_SCHEME, `$1${HIDDEN}`) : shown;
}

function hideNamed(text: string): string {
  let shown = '';
  let from = 0;
  for (const { 0: name, index } of text.matchAll(WORD)) {
    const end = index + name.length;
    if (index < from) continue; // it may be hidden already
    const isSecret = isSecretName(name);
    if (!isSecret && !isKeyName(name)) continue;
    const [sign, quote = ''] =
      SIGN.exec(text.slice(end, end + MOST_SIGN)) ?? signOfElement(text, index, end);
    if (sign === undefined) continue;
    const begin = end + sign.length;
    const length = lengthOfValue(text.slice(begin), quote, { text, name, index, sign });
    if (length === 0) continue;
    if (!isSecret && !looksLikeKey(text.slice(begin, begin + length))) continue;
    shown += text.slice(from, begin) + HIDDEN;
    from = begin + length;
  }
  return shown + text.slice(from);
}

/** XML: `<password>x</password>`; its value ends as if it was in a quote. */
function signOfElement(text: string, index: number, end: number): [string?, string?] {
  return text[index - 1] === '<' && text[end] === '>' ? ['>', '<'] : [];
}

/** SQL: `IDENTIFIED BY 'x'` */
function hideIdentified(text: string): string {
  let shown = '';
  let from = 0;
  for (const { 0: words, 1: quote = '', index } of text.matchAll(IDENTIFIED)) {
    const begin = index + words.length;
    if (begin < from) continue;
    const rest = text.slice(begin);
    const length = quote === '' ? (/^[^\s;"')]*/.exec(rest)?.[0].length ?? 0) : endOf(rest, quote);
    shown += text.slice(from, begin) + HIDDEN;
    from = begin + length;
  }
  return shown + text.slice(from);
}

/** A name, its place, and the sign behind it. */
interface Named {
  text: string;
  name: string;
  index: number;
  sign: string;
}

function lengthOfValue(rest: string, quote: string, named: Named): number {
  if (quote !== '') return endOf(rest, quote);
  if (isWhole(named)) return rest.length;
  const around = quoteAround(named);
  if (around !== '') return endOf(rest, around);
  if (/^[[{]/.test(rest)) return lengthOfBrackets(rest);
  const listed = LISTED.exec(rest)?.[0].length ?? 0;
  if (!isWordOfShell(named)) return listed;
  const lengthOf = (word: RegExp) => word.exec(rest)?.[0].length ?? 0;
  if (named.name.startsWith('-')) return lengthOf(OPTION_WORD);
  // What is no option may also be in a list, such as that of a database's address.
  const isListed = isInList(named, rest.slice(listed));
  return isListed ? Math.max(listed, lengthOf(OPTION_WORD)) : lengthOf(ASSIGNED_WORD);
}

/** An option, a header or a variable that is all of an argument. */
function isWhole({ text, name, index, sign }: Named): boolean {
  // --header=Cookie: x; y
  if (index > 0) return sign.includes(':') && /^--?[\w-]{1,60}=$/.test(text.slice(0, index));
  return name.startsWith('-') || sign.includes(':') || !/\s/.test(text);
}

/** The quote that begins right before a name, and does not end behind it: `"PASSWORD=a;b"`. */
function quoteAround({ text, index, sign }: Named): string {
  if (/^[\\"'`%]/.test(sign)) return '';
  return /\\{0,7}["'`]$/.exec(text.slice(Math.max(0, index - 8), index))?.[0] ?? '';
}

function isWordOfShell({ text, index }: Named): boolean {
  const before = text.slice(Math.max(0, index - MOST_ENVIRONMENT), index);
  return /^$|[\s|;&(`]$/.test(before) || ENVIRONMENT.test(before);
}

/** `behind`: what follows the value, if it is in a list. */
function isInList({ text, index, sign }: Named, behind: string): boolean {
  if (sign.trim() !== sign || sign.includes(':')) return true;
  return (
    LIST_BEFORE.test(text.slice(Math.max(0, index - MOST_LIST), index)) ||
    LIST_BEHIND.test(behind.slice(0, MOST_LIST))
  );
}

/** All of an array or an object. */
function lengthOfBrackets(rest: string): number {
  let depth = 0;
  for (let at = 0; at < rest.length; at++) {
    const char = rest.charAt(at);
    if (char === '[' || char === '{') depth++;
    if (char === ']' || char === '}') depth--;
    if (depth === 0) return at + 1;
  }
  return rest.length;
}

/** Where a quoted value ends; one that does not has all of the rest. */
function endOf(rest: string, quote: string): number {
  const mark = quote.slice(-1);
  if (quote.startsWith('%') || mark === '<') {
    const end = rest.indexOf(quote);
    return end === -1 ? rest.length : end;
  }
  const escapes = quote.length - 1;
  for (let at = rest.indexOf(mark); at !== -1; at = rest.indexOf(mark, at + 1)) {
    let before = 0;
    while (rest[at - 1 - before] === '\\') before++;
    const isEscaped = before < escapes || (before - escapes) % (2 * (escapes + 1)) !== 0;
    if (isEscaped) continue;
    // SQL: 'it''s'
    if (mark !== "'" || escapes > 0 || at === 0 || rest[at + 1] !== mark) return at - escapes;
    at++;
  }
  return rest.length;
}
