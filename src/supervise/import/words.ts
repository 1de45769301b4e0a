/** Splits a command line as a shell does, without expanding anything. @throws Error if a quote is open */
export function shellWords(text: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote: string | null = null;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (quote === "'") {
      if (character === "'") quote = null;
      else word = (word ?? '') + character;
    } else if (character === '\\' && at + 1 < text.length) {
      const next = text[++at] ?? '';
      const isKept = quote === '"' && !'"\\$`'.includes(next);
      word = `${word ?? ''}${isKept ? '\\' : ''}${next}`;
    } else if (quote === '"') {
      if (character === '"') quote = null;
      else word = (word ?? '') + character;
    } else if (character === "'" || character === '"') {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== null) throw new Error(`a quote is open: ${text}`);
  return word === null ? words : [...words, word];
}
