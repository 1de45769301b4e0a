/**
 * What a terminal may take for more than text: control characters (C0, DEL, C1), line and paragraph
 * separators, and what turns the direction of writing.
 */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

function codePoint(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Text from elsewhere, fit for a terminal; a backslash is doubled, so that nothing is ambiguous. */
export function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replace(UNSAFE, codePoint);
}

/** A line of JSON that is as safe and still the same value. */
export function toJsonLine(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE, codePoint);
}
