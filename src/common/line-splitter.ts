const NEWLINE = 0x0a;

/** Lines of a stream that nobody has promised to have any: one that is too long is not kept. */
export class LineSplitter {
  readonly #most: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isTooLong = false;

  /** Lines of more than `most` bytes are left out. */
  constructor(most: number) {
    this.#most = most;
  }

  /** A line without an end is too long already. */
  get isTooLong(): boolean {
    return this.#isTooLong;
  }

  /** The lines that end in this chunk. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#add(rest.subarray(0, end));
      if (!this.#isTooLong) lines.push(Buffer.concat(this.#chunks).toString('utf8'));
      this.#clear();
      rest = rest.subarray(end + 1);
    }
    this.#add(rest);
    return lines;
  }

  #add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#most) {
      this.#isTooLong = true;
      this.#chunks = [];
    } else if (part.length > 0) {
      this.#chunks.push(part);
    }
  }

  #clear(): void {
    this.#chunks = [];
    this.#bytes = 0;
    this.#isTooLong = false;
  }
}
