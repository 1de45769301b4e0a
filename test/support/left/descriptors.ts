import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

import type { Leak } from './leak';

/** A descriptor's number and what it leads to: `socket:[1234]`. */
export type Descriptors = ReadonlyMap<string, string>;

/** libuv keeps these for the life of a process, once they were needed. */
const OF_NODE = ['anon_inode:inotify', 'anon_inode:[io_uring]'];

const OTHER = 'a descriptor';

/** What this process has open. */
export function ownDescriptors(): Descriptors {
  const open = new Map<string, string>();
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      open.set(fd, readlinkSync(`/proc/self/fd/${fd}`));
    } catch {
      // that of the folder itself
    }
  }
  return open;
}

/** What is open that was not so before. It ends only with the process. */
export function leftDescriptors(before: Descriptors): Leak[] {
  const left: Leak[] = [];
  for (const [fd, target] of ownDescriptors()) {
    if (before.get(fd) === target || OF_NODE.includes(target)) continue;
    const { kind, name } = described(fd, target);
    left.push({ kind, name: `${name}, as descriptor ${fd}` });
  }
  // What says most comes first.
  return left.sort((a, b) => Number(a.kind === OTHER) - Number(b.kind === OTHER));
}

function described(fd: string, target: string): { kind: string; name: string } {
  const [, inode] = /^socket:\[(\d+)\]$/.exec(target) ?? [];
  if (inode !== undefined) return { kind: 'a socket', name: nameOfSocket(inode) };
  const [, object] = /^anon_inode:\[?bpf[-_](\w+)\]?$/.exec(target) ?? [];
  if (object !== undefined) {
    const id = inFdinfo(fd, /^(?:prog|map|link)_id:\s+(\d+)$/m);
    return { kind: 'a BPF object', name: `${object} ${id}` };
  }
  if (target.includes('pidfd')) {
    return { kind: 'a pidfd', name: `of process ${inFdinfo(fd, /^Pid:\s+(-?\d+)$/m)}` };
  }
  const kind = target.startsWith('/') ? 'an open file' : OTHER;
  return { kind, name: target };
}

function inFdinfo(fd: string, pattern: RegExp): string {
  return firstIn(`/proc/self/fdinfo/${fd}`, pattern) ?? 'unknown';
}

function nameOfSocket(inode: string): string {
  const path = firstIn('/proc/net/unix', new RegExp(` ${inode} (\\S.*)$`, 'm'));
  if (path !== undefined) return path.replace(/@+$/, ''); // Node.js pads abstract names
  for (const protocol of ['tcp', 'tcp6', 'udp', 'udp6']) {
    const line = new RegExp(`^ *\\d+: \\S+:([0-9A-F]{4}) (?:\\S+ +){7}${inode} `, 'm');
    const port = firstIn(`/proc/net/${protocol}`, line);
    if (port !== undefined) return `${protocol} port ${parseInt(port, 16)}`;
  }
  const netlink = firstIn('/proc/net/netlink', new RegExp(`^\\S+ +(\\d+) .* ${inode} *$`, 'm'));
  return netlink === undefined ? `number ${inode}` : `netlink protocol ${netlink}`;
}

function firstIn(path: string, pattern: RegExp): string | undefined {
  try {
    return pattern.exec(readFileSync(path, 'latin1'))?.[1];
  } catch {
    return undefined; // closed since, or a kernel without it
  }
}
