import { readFileSync } from 'node:fs';

/** What a hypervisor's command line says of how it ends. */
export type QemuCommand = {
  /** `-no-shutdown`, or `-action shutdown=pause,panic=pause`. */
  mayLinger: boolean;
  /** `-daemonize`: only then it writes to its log (`-D`) which signal it obeys. */
  isDaemonized: boolean;
  /** `-incoming`: it goes on with what was begun elsewhere. */
  isIncoming: boolean;
  /** By its usual name: a channel of an agent in the guest, which others may have it power off by. */
  hasAgent: boolean;
  /** It tells when the guest opens that channel, as an agent does: of a port that has an id. */
  tellsAgent: boolean;
  /** isa-debug-exit: its guest may end it with a code of its own. */
  hasDebugExit: boolean;
};

/** As `-device` takes them, in either of its languages. */
const AGENT_PORT = /virtserialport.*guest_agent/;
const HAS_ID = /,id=|"id"/;

/** `null` where it cannot be read. */
export function readQemuCommand(pid: number): QemuCommand | null {
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    if (args.length < 2) return null;
    const has = (pattern: RegExp) => args.some((arg) => pattern.test(arg));
    return {
      mayLinger: has(/^--?no-shutdown$/) || has(/(^|,)(shutdown|panic)=pause(,|$)/),
      isDaemonized: has(/^--?daemonize$/),
      isIncoming: has(/^--?incoming$/),
      hasAgent: has(/guest_agent|qemu-ga|qga/),
      // VSERPORT_CHANGE: hw/char/virtio-console.c, set_guest_connected().
      tellsAgent: args.some((arg) => AGENT_PORT.test(arg) && HAS_ID.test(arg)),
      hasDebugExit: has(/isa-debug-exit/),
    };
  } catch {
    return null;
  }
}
