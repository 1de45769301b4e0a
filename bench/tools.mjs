import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Undefined if it is not installed. */
export const find = (program) =>
  ['/usr/bin', '/usr/sbin'].map((path) => join(path, program)).find((path) => existsSync(path));

/** Mounts tracefs, which the program reads, in a mount namespace of its own. */
export const withTracefs = (program) => [
  ...['unshare', '-m', 'sh', '-c'],
  `mount -t tracefs tracefs /sys/kernel/tracing; exec ${program}`,
];

/** As a contender; undefined if it is not installed. */
export function findExitsnoop() {
  const program = find('exitsnoop');
  return program && { name: 'exitsnoop', command: withTracefs(program), tells: false };
}
