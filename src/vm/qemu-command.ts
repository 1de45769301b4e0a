import { readFileSync } from 'node:fs';

/** What a hypervisor's command line says of how it ends. */
export type QemuCommand = {
  /** `-no-shutdown`, or `-action shutdown=pause,panic=pause`. */
  mayLinger: boolean;
  /** `-daemonize`: only then it writes to its log (`-D`) which signal it obeys. */
  isDaemonized: boolean;
};

/** `null` where it cannot be read. */
export function readQemuCommand(pid: number): QemuCommand | null {
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    if (args.length < 2) return null;
    return {
      mayLinger: args.some(
        (arg) => /^--?no-shutdown$/.test(arg) || /(^|,)(shutdown|panic)=pause(,|$)/.test(arg),
      ),
      isDaemonized: args.some((arg) => /^--?daemonize$/.test(arg)),
    };
  } catch {
    return null;
  }
}
