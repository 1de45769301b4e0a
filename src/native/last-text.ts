/** Processes with the same name tend to exit together, so the last text is kept with its bytes. */
export class LastText {
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  readonly #recordBytes: number;
  readonly #offset: number;
  readonly #last: Int32Array;
  #text = '';

  /** `offset`: of the text in a record, which has room for so many `bytes` of it. */
  constructor(records: ArrayBuffer, recordBytes: number, offset: number, bytes: number) {
    this.#recordBytes = recordBytes;
    this.#words = new Int32Array(records);
    this.#bytes = Buffer.from(records);
    this.#offset = offset;
    this.#last = new Int32Array(bytes / 4);
  }

  /** The text of this record; zeros follow it. */
  at(index: number): string {
    const first = (index * this.#recordBytes + this.#offset) / 4;
    const words = this.#words;
    const last = this.#last;
    for (let i = 0; i < last.length; i++) {
      const word = words[first + i];
      if (word !== last[i]) return this.#read(index, first);
      if (word === 0) break;
    }
    return this.#text;
  }

  #read(index: number, first: number): string {
    this.#last.set(this.#words.subarray(first, first + this.#last.length));
    const begin = index * this.#recordBytes + this.#offset;
    this.#text = textAt(this.#bytes, begin, this.#last.byteLength);
    return this.#text;
  }
}

/** Up to the first zero byte. */
export function textAt(bytes: Buffer, begin: number, length: number): string {
  const end = bytes.indexOf(0, begin);
  return bytes.toString('utf8', begin, end < 0 ? begin + length : Math.min(end, begin + length));
}
