import { readdirSync } from 'node:fs';

/**
 * The pids of all processes that /proc shows now.
 *
 * @throws Error of readdir(3), for example if no descriptor is left
 */
export function pids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^[1-9]\d*$/.test(name))
    .map(Number);
}
