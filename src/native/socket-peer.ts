import { type Socket, connect } from 'node:net';

import type { SocketPeer } from './addon.js';
import { addonRefusal, loadAddon } from './load-addon.js';

/** The process at the other end (SO_PEERCRED, SO_PEERPIDFD); `null` if unknown. */
export function peerOf(socket: Socket): SocketPeer | null {
  const { _handle: handle } = socket as Socket & { _handle?: { fd?: number } };
  if (addonRefusal() !== null || typeof handle?.fd !== 'number' || handle.fd < 0) return null;
  return loadAddon().peer(handle.fd) ?? null;
}

/**
 * Which process listens at a unix socket, found without sending anything. It is the one that called
 * listen(2), and may have exited since. `'nobody'`: no such socket, or no listener. `'unknown'`:
 * that cannot be determined.
 */
export function listenerOf(path: string): Promise<SocketPeer | 'nobody' | 'unknown'> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.on('connect', () => {
      resolve(peerOf(socket) ?? 'unknown');
      socket.destroy();
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      resolve(code === 'ECONNREFUSED' || code === 'ENOENT' ? 'nobody' : 'unknown');
      socket.destroy();
    });
  });
}
