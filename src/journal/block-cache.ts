import { MessageChannel } from 'node:worker_threads';

/** Smaller ones may be a part of Node's pool, and are not worth it. */
const WORTH_BYTES = 16 * 1024;

const { port1: closed } = new MessageChannel();
closed.close();

/**
 * The latest blocks that were decompressed, for one reader at a time: the next question of a story is often about the
 * same ones.
 */
export class BlockCache {
  readonly #most: number;
  /** The latest ones last. */
  readonly #blocks = new Map<string, Buffer>();

  /** Keeps at most so many: the latest one at least, which is in use. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves or rejects like `load`. It is valid until the next call is done. */
  async read(key: string, load: () => Promise<Buffer>): Promise<Buffer> {
    const bytes = this.#blocks.get(key) ?? (await load());
    this.#blocks.delete(key);
    this.#blocks.set(key, bytes);
    for (const [oldest, old] of this.#blocks) {
      if (this.#blocks.size <= this.#most) break;
      this.#blocks.delete(oldest);
      giveBack(old);
    }
    return bytes;
  }
}

/**
 * Frees the memory of a buffer, which is empty then. V8 collects such memory when there are 64 MiB of it. What is sent to a
 * closed port is gone at once (https://html.spec.whatwg.org/#message-port-post-message-steps).
 */
export function giveBack({ buffer }: Buffer): void {
  if (buffer.byteLength < WORTH_BYTES) return;
  try {
    closed.postMessage(null, [buffer as ArrayBuffer]);
  } catch {
    // It is shared with somebody, who goes on to need it.
  }
}
