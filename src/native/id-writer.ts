/** Small enough for V8's small integers, which are fast. */
const CHUNK = 1e8;
const CHUNK_DIGITS = 8;

const ZERO = 0x30;
const DASH = 0x2d;

/**
 * Writes ids like {@link identityId}, but fast enough for hundreds of thousands per second. V8
 * caches the text of each number that it converts, which would be half the cost of an event.
 */
export class IdWriter {
  readonly #bytes = Buffer.alloc(64);
  readonly #prefixEnd: number;
  #end = 0;

  constructor(boot: string) {
    this.#prefixEnd = this.#bytes.write(`${boot}-`, 'latin1');
  }

  /** `mark`: the letter before `number`, or ''. `number`: an integer below 2^53. */
  id(pid: number, mark: '' | 't' | 'x', number: number): string {
    this.#end = this.#prefixEnd;
    this.#digits(pid);
    this.#bytes[this.#end++] = DASH;
    if (mark !== '') this.#bytes[this.#end++] = mark.charCodeAt(0);
    this.#digits(number);
    return this.#bytes.toString('latin1', 0, this.#end);
  }

  #digits(number: number): void {
    const upper = Math.floor(number / CHUNK);
    if (upper === 0) {
      this.#chunk(number, 1);
      return;
    }
    this.#digits(upper);
    this.#chunk(number - upper * CHUNK, CHUNK_DIGITS);
  }

  /** Writes at least `least` digits. */
  #chunk(number: number, least: number): void {
    let rest = number | 0;
    let digits = 1;
    for (let power = 10; power <= rest; power *= 10) digits++;
    digits = Math.max(digits, least);
    for (let at = this.#end + digits - 1; at >= this.#end; at--) {
      const tenth = (rest / 10) | 0;
      this.#bytes[at] = ZERO + rest - tenth * 10;
      rest = tenth;
    }
    this.#end += digits;
  }
}
