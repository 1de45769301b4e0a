import type { WriteStream } from 'node:tty';

/** Characters without width; Hangul vowels and final consonants join what is before them. */
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff\ud7b0-\ud7ff]$/u;

/** Characters two columns wide: East Asian scripts, except their half-width forms, and emoji. */
const DOUBLE_WIDTH =
  /^(?![\uff61-\uffdc])[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6]$/u;

/** The width of a text in terminal columns; the text must not contain control characters. */
export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (!ZERO_WIDTH.test(character)) width += DOUBLE_WIDTH.test(character) ? 2 : 1;
  }
  return width;
}

/** Pads a text with spaces to this width. */
export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

/**
 * Breaks a text into lines of at most this width: between words, and inside words that are too
 * long.
 */
export function wrap(text: string, width: number): string[] {
  if (textWidth(text) <= width) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((each) => pieces(each, width))) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (textWidth(longer) <= width) {
      line = longer;
    } else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}

/** Splits a word into parts that fit. */
function pieces(word: string, width: number): string[] {
  const parts: string[] = [];
  let part = '';
  for (const character of word) {
    if (textWidth(part + character) > width) {
      parts.push(part);
      part = '';
    }
    part += character;
  }
  return [...parts, part];
}

/** Formats a message for a terminal: lines that continue are indented. */
export function paragraph(text: string, columns: number | undefined, indent: number): string {
  if (columns === undefined || textWidth(text) <= columns) return text;
  const [lead = ''] = /^ */.exec(text) ?? [];
  const room = columns - Math.max(indent, lead.length);
  const [first = '', ...rest] = wrap(text.slice(lead.length), Math.max(20, room));
  return [lead + first, ...rest.map((line) => ' '.repeat(indent) + line)].join('\n');
}

/** `undefined`: not a terminal, or its width is unknown. */
export function columnsOf(stream: WriteStream): number | undefined {
  return stream.isTTY && stream.columns > 0 ? stream.columns : undefined;
}
