// Lane: unit

import { textWidth, wrap } from '../../src/cli/output/terminal-text';

// As wcwidth(3) of glibc has it.
test.each([
  ['abc', 3],
  ['名前', 4],
  ['カナ', 4],
  ['ｶﾅ｡', 3], // half-width Katakana
  ['ﾡￂ', 2], // half-width Hangul
  ['한글', 4],
  ['\u1112\u1161\u11ab', 2], // the same as 한, in parts
  ['\u1112\ud7b0\ud7cb', 2],
  ['e\u0301', 1],
  ['🙂', 2],
])('%j takes %i columns', (text, width) => {
  expect(textWidth(text)).toBe(width);
});

test('half-width text is broken where the line ends', () => {
  expect(wrap('ｶﾅｶﾅｶ', 4)).toEqual(['ｶﾅｶﾅ', 'ｶ']);
});
