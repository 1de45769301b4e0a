/** What a text in JSON has where. Keys are paths, such as `services[0].stop.graceMs`. */
export interface JsonPlaces {
  /** The line of each value, from 1. */
  lines: ReadonlyMap<string, number>;
  /** The first key that an object has twice: JSON.parse() takes the last one without a word. */
  twice: string | null;
  /** Where it is no JSON, and what should be there; `null`: it is JSON. */
  fault: { line: number; column: number; expected: string } | null;
}

const SPACE = /[ \t\r\n]*/y;
const STRING = String.raw`"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"`;
const TOKEN = new RegExp(
  String.raw`[[\]{},:]|${STRING}|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null`,
  'y',
);

type Expected = 'a value' | 'a value or ]' | 'a key' | 'a key or }' | ':' | ', or }' | ', or ]';

/** An array or an object that has begun. */
interface Level {
  path: string;
  /** `null`: it is an object. */
  index: number | null;
  keys: Set<string>;
}

/** Reads it token by token, because JSON.parse() does not always say where it stopped. */
export function placesIn(text: string): JsonPlaces {
  const scan = new Scan(text);
  for (;;) {
    const token = scan.next();
    if (token === null) return scan.end();
    if (!scan.take(token)) return scan.fault();
  }
}

class Scan {
  readonly #text: string;
  readonly #lines = new Map<string, number>();
  readonly #levels: Level[] = [];
  #twice: string | null = null;
  #expected: Expected | 'the end' = 'a value';
  #path = '';
  #offset = 0;
  #line = 1;
  #lineStart = 0;
  #tokenStart = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** `''`: no token begins here; `null`: the end. */
  next(): string | null {
    SPACE.lastIndex = this.#offset;
    const space = SPACE.exec(this.#text)?.[0] ?? '';
    for (let at = space.indexOf('\n'); at !== -1; at = space.indexOf('\n', at + 1)) {
      this.#line++;
      this.#lineStart = this.#offset + at + 1;
    }
    this.#offset += space.length;
    this.#tokenStart = this.#offset;
    if (this.#offset === this.#text.length) return null;
    TOKEN.lastIndex = this.#offset;
    const token = TOKEN.exec(this.#text)?.[0] ?? '';
    this.#offset += token.length;
    return token;
  }

  /** `false`: it does not belong here. */
  take(token: string): boolean {
    const level = this.#levels.at(-1);
    switch (this.#expected) {
      case 'the end':
        return false;
      case ':':
        if (token !== ':') return false;
        this.#expected = 'a value';
        return true;
      case ', or }':
      case ', or ]':
        return this.#separate(token);
      case 'a key':
      case 'a key or }':
        if (token === '}' && this.#expected === 'a key or }') return this.#close();
        return level !== undefined && this.#key(token, level);
      default:
        if (token === ']' && this.#expected === 'a value or ]') return this.#close();
        return this.#value(token, level);
    }
  }

  end(): JsonPlaces {
    if (this.#expected !== 'the end') return this.fault();
    return { lines: this.#lines, twice: this.#twice, fault: null };
  }

  fault(): JsonPlaces {
    const column = this.#tokenStart - this.#lineStart + 1;
    const fault = { line: this.#line, column, expected: this.#expected };
    return { lines: this.#lines, twice: this.#twice, fault };
  }

  #key(token: string, level: Level): boolean {
    if (!token.startsWith('"')) return false;
    const key = JSON.parse(token) as string;
    this.#path = level.path === '' ? key : `${level.path}.${key}`;
    if (level.keys.has(key)) this.#twice ??= this.#path;
    level.keys.add(key);
    this.#lines.set(this.#path, this.#line);
    this.#expected = ':';
    return true;
  }

  #value(token: string, level: Level | undefined): boolean {
    if (token === '' || /^[\]},:]/.test(token)) return false;
    if (level !== undefined && level.index !== null) this.#path = `${level.path}[${level.index}]`;
    if (!this.#lines.has(this.#path)) this.#lines.set(this.#path, this.#line);
    if (token === '{' || token === '[') {
      const index = token === '[' ? 0 : null;
      this.#levels.push({ path: this.#path, index, keys: new Set() });
      this.#expected = token === '[' ? 'a value or ]' : 'a key or }';
    } else {
      this.#afterValue();
    }
    return true;
  }

  #separate(token: string): boolean {
    const level = this.#levels.at(-1);
    if (level === undefined) return false;
    if (token === (level.index === null ? '}' : ']')) return this.#close();
    if (token !== ',') return false;
    if (level.index !== null) level.index++;
    this.#expected = level.index === null ? 'a key' : 'a value';
    return true;
  }

  #close(): boolean {
    this.#levels.pop();
    this.#afterValue();
    return true;
  }

  #afterValue(): void {
    const level = this.#levels.at(-1);
    if (level === undefined) this.#expected = 'the end';
    else this.#expected = level.index === null ? ', or }' : ', or ]';
  }
}
