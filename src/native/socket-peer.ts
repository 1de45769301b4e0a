import { type Socket, connect } from 'node:net';

import type { SocketPeer } from './addon.js';
import { addonRefusal, loadAddon } from './load-addon.js';

/** The process at the other end (SO_PEERCRED, SO_PEERPIDFD); `null` if unknown. */
export function peerOf(socket: Socket): SocketPeer | null {
  const peer = lookAtPeer(socket);
  return peer === 'outside' ? null : peer;
}

/** `'outside'`: it is not in our pid namespace, so it has no pid here. */
function lookAtPeer(socket: Socket): SocketPeer | 'outside' | null {
  const { _handle: handle } = socket as Socket & { _handle?: { fd?: number } };
  if (addonRefusal() !== null || typeof handle?.fd !== 'number' || handle.fd < 0) return null;
  return loadAddon().peer(handle.fd) ?? 'outside';
}

/**
 * Which process but `owner` is at the other end, for a message; `null`: none, or the addon cannot
 * be used, as a downgrade says. An `owner` of `null` is any process.
 */
export function strangerAt(socket: Socket, owner: number | null): string | null {
  const peer = owner === null ? null : lookAtPeer(socket);
  if (peer === 'outside') return 'a process outside of this pid namespace';
  return peer === null || peer.pid === owner ? null : `process ${peer.pid}`;
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
