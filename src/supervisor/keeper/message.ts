import { ExitwatchError } from '../../common/errors.js';

/** A message of the keeper: its fields in order. See native/keeper/text.c. */
export type Fields = readonly (readonly [key: string, value: string])[];

/** The largest message that the keeper takes; native/keeper/keeper.h. */
const MOST_BYTES = 4 << 20;
const LENGTH_BYTES = 4;

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` if a value has a NUL, or all is too long */
export function encodeMessage(fields: Fields): Buffer {
  for (const [key, value] of fields) {
    if (value.includes('\0')) throw invalid(`${key} must not contain a NUL`);
  }
  const body = Buffer.from(fields.map(([key, value]) => `${key}=${value}\0`).join(''), 'utf8');
  if (body.length > MOST_BYTES)
    throw invalid(`arguments and environment exceed ${MOST_BYTES} bytes`);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(body.length);
  return Buffer.concat([length, body]);
}

function invalid(detail: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_INVALID_OPTION', detail);
}

/** What a keeper says, by key; `member` may occur more than once. */
export class Message {
  readonly #fields: Fields;

  constructor(fields: Fields) {
    this.#fields = fields;
  }

  text(key: string): string | null {
    return this.#fields.find(([name]) => name === key)?.[1] ?? null;
  }

  number(key: string): number | null {
    const text = this.text(key);
    return text !== null && /^-?\d{1,16}$/.test(text) ? Number(text) : null;
  }

  has(key: string): boolean {
    return this.text(key) !== null;
  }

  all(key: string): string[] {
    return this.#fields.filter(([name]) => name === key).map(([, value]) => value);
  }
}

/** Cuts what comes from the socket into messages. */
export class MessageReader {
  #pieces: Buffer[] = [];
  #size = 0;

  /** @throws Error if this cannot be the protocol */
  read(piece: Buffer): Message[] {
    this.#pieces.push(piece);
    this.#size += piece.length;
    if (this.#size < LENGTH_BYTES) return [];
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    const messages: Message[] = [];
    let at = 0;
    while (bytes.length - at >= LENGTH_BYTES) {
      const length = bytes.readUInt32LE(at);
      if (length === 0 || length > MOST_BYTES) throw new Error('not a message of a keeper');
      if (bytes.length - at - LENGTH_BYTES < length) break;
      messages.push(decode(bytes.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length)));
      at += LENGTH_BYTES + length;
    }
    const rest = bytes.subarray(at);
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
    return messages;
  }
}

function decode(body: Buffer): Message {
  if (body.at(-1) !== 0) throw new Error('not a message of a keeper');
  const fields = body
    .toString('utf8', 0, body.length - 1)
    .split('\0')
    .map((field) => {
      const equals = field.indexOf('=');
      if (equals <= 0) throw new Error('not a message of a keeper');
      return [field.slice(0, equals), field.slice(equals + 1)] as const;
    });
  return new Message(fields);
}
