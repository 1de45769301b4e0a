const NEWLINE = 0x0a;

/** Splits an untrusted stream into lines; a line that is too long is dropped. */
export class LineSplitter {
  readonly #most: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isTooLong = false;

  /** Drops lines longer than `most` bytes. */
  constructor(most: number) {
    this.#most = most;
  }

  /** The current, unfinished line is already too long. */
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
