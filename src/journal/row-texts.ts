/** Rows that came after each other share a chunk. */
const CHUNK_BYTES = 256 * 1024;

/** Bytes of a chunk. */
export interface Piece {
  chunk: Buffer;
  start: number;
  end: number;
}

let chunk = Buffer.alloc(0);
let used = 0;

/**
 * The lines of rows without their beginning, as bytes: the garbage collector neither copies texts around until they are
 * written, nor looks at each.
 *
 * @param text `{` and the rest of a row
 */
export function pieceOf(text: string): Piece {
  const most = 3 * text.length + 1; // UTF-8
  if (chunk.length - used < most) {
    chunk = Buffer.allocUnsafeSlow(Math.max(CHUNK_BYTES, most));
    used = 0;
  }
  const start = used + 1;
  const end = used + chunk.write(text, used) + 1;
  chunk[end - 1] = NEWLINE;
  used = end;
  return { chunk, start, end };
}

const NEWLINE = 0x0a;
