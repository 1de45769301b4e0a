/** Signals one process. A pid that is not known must not become 0: that is our whole process group. */
export function kill(pid: number | null | undefined, signal: NodeJS.Signals): void {
  process.kill(known(pid, signal), signal);
}

/** Signals the group of a process that leads one. */
export function killGroup(pid: number | null | undefined, signal: NodeJS.Signals): void {
  process.kill(-known(pid, signal), signal);
}

/** -1 would be all that we may signal, and that is what 1 becomes as a group. */
function known(pid: number | null | undefined, signal: NodeJS.Signals): number {
  if (pid == null || pid <= 1) throw new Error(`cannot send ${signal} to the process ${pid}`);
  return pid;
}
