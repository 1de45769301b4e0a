import type { ExitEvent } from '../../src';

/**
 * Whether an exit is of a child of the program `storm`, which has reported the pids of its children.
 * By both pids, because each may come round. The parent may be unknown on arm64 before Linux 6.4.
 */
export function isOfStorms(storms: readonly number[], report: readonly string[]) {
  const pids = new Set(report.map((line) => Number(line.split(' ')[0])));
  return ({ pid, parentPid }: ExitEvent) =>
    pids.has(pid) && (parentPid === null || storms.includes(parentPid));
}
