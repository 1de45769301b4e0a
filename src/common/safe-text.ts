/**
 * Characters that a terminal may interpret: control characters (C0, DEL, C1), line and paragraph
 * separators, and those that change the direction of writing.
 */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

const DEL = '\u007f';

function codePoint(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/**
 * Makes untrusted text safe for a terminal. Doubles backslashes, so that the result is unambiguous.
 */
export function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replace(UNSAFE, codePoint);
}

/** A line of JSON that is equally safe and has the same value. `replacer`: as of JSON.stringify(). */
export function toJsonLine(
  value: unknown,
  replacer?: (key: string, value: unknown) => unknown,
): string {
  const line = JSON.stringify(value, replacer);
  // In JSON, C0 is always escaped. Both take a fraction of the time of a search by a pattern.
  const isSafe = Buffer.byteLength(line) === line.length && !line.includes(DEL);
  return isSafe ? line : line.replace(UNSAFE, codePoint);
}
