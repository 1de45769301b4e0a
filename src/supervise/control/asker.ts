import type { SocketPeer } from '../../native/addon.js';
import { processTable } from '../../identity/platform-table.js';
import { identify } from '../../identity/process-identity.js';

/** How many of its ancestors to name. */
const MOST_ANCESTORS = 3;

/**
 * Who has asked for something over the socket, in a few words: the user, and what the command was typed
 * into. The names are what processes call themselves.
 */
export function describeAsker(what: string, peer: SocketPeer | null): string {
  if (peer === null) return `${what}, asked over the socket`;
  const ancestors: string[] = [];
  try {
    const table = processTable();
    // Whoever has its pid now may be another process.
    const isIt = peer.inode === 0 || identify(peer.pid)?.inode === peer.inode;
    let pid = isIt ? parentOf(table.lookNow(peer.pid)) : null;
    while (pid !== null && pid > 1 && ancestors.length < MOST_ANCESTORS) {
      const row = table.lookNow(pid);
      if (row === null || row === 'unknown') break;
      ancestors.push(`${row.pid} ${row.name ?? 'name unknown'}`);
      pid = row.parentPid;
    }
  } catch {
    // /proc does not show it.
  }
  return [`${what}, asked by uid ${peer.uid}`, ...ancestors].join(' < ');
}

function parentOf(row: { parentPid: number | null } | 'unknown' | null): number | null {
  return row === null || row === 'unknown' ? null : row.parentPid;
}
