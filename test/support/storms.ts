import type { ExitEvent } from '../../src';

/**
 * Whether an exit is of a child of the program `storm`, which has reported the pids of its children.
 * The parent may be unknown on arm64 before Linux 6.4.
 */
export function isOfStorms(storms: readonly number[], report: readonly string[]) {
  const pids = new Set(report.map((line) => Number(line.split(' ')[0])));
  return ({ pid, parentPid }: ExitEvent) =>
    parentPid === null ? pids.has(pid) : storms.includes(parentPid);
}
