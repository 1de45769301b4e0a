/** What a word of an event means; the word itself if a later version has written it. */
export function wordsFor(meanings: Readonly<Record<string, string>>, word: string): string {
  return (Object.hasOwn(meanings, word) ? meanings[word] : undefined) ?? word;
}
