/** Signals one process. A pid that is not known must not become 0: that is our whole process group. */
export function kill(pid: number | null | undefined, signal: NodeJS.Signals): void {
  if (pid == null || pid <= 0) throw new Error(`cannot send ${signal} to the process ${pid}`);
  process.kill(pid, signal);
}
