import { MessageChannel } from 'node:worker_threads';

/** Smaller ones may be a part of Node's pool, and are not worth it. */
const WORTH_BYTES = 128 * 1024;

const { port1: closed } = new MessageChannel();
closed.close();

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
