import { readFileSync } from 'node:fs';

/**
 * What a QEMU's command line says about how it ends.
 *
 * @see [Why a virtual machine ended](../../../docs/virtual-machines.md)
 */
export type QemuCommand = {
  /** `-no-shutdown`, or `-action shutdown=pause,panic=pause`. */
  mayLinger: boolean;
  /** `-daemonize`: only then does it log (`-D`) which signal it obeys. */
  isDaemonized: boolean;
  /** `-incoming`: it continues a run that began elsewhere. */
  isIncoming: boolean;
  /** It has a channel with an agent's usual name: others may power the guest off through it. */
  hasAgent: boolean;
  /** QEMU reports it when an agent opens that channel: only for a port that has an id. */
  tellsAgent: boolean;
  /** Ids of ports that are not an agent's, by their names. Missing in old records. */
  otherPorts?: readonly string[];
  /** isa-debug-exit: the guest may choose the exit code. */
  hasDebugExit: boolean;
};

/** As `-device` accepts them, in either of its syntaxes. */
const AGENT_PORT = /virtserialport.*guest_agent/;
const PORT = /virt(serialport|console)/;
const AGENT = /guest_agent|qemu-ga|qga/;
const HAS_ID = /,id=|"id"/;
const HAS_NAME = /,name=|"name"/;
const ID = /,id=([^,]+)|"id"\s*:\s*"([^"]+)"/;

/** `null` if it cannot be read. */
export function readQemuCommand(pid: number): QemuCommand | null {
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    if (args.length < 2) return null;
    const has = (pattern: RegExp) => args.some((arg) => pattern.test(arg));
    return {
      mayLinger: has(/^--?no-shutdown$/) || has(/(^|,)(shutdown|panic)=pause(,|$)/),
      isDaemonized: has(/^--?daemonize$/),
      isIncoming: has(/^--?incoming$/),
      hasAgent: has(AGENT),
      // VSERPORT_CHANGE: hw/char/virtio-console.c, set_guest_connected().
      tellsAgent: args.some((arg) => AGENT_PORT.test(arg) && HAS_ID.test(arg)),
      otherPorts: args.flatMap(otherPort),
      hasDebugExit: has(/isa-debug-exit/),
    };
  } catch {
    return null;
  }
}

function otherPort(arg: string): string[] {
  // A console needs no name, and is no agent's.
  const isOther = arg.includes('virtconsole') || HAS_NAME.test(arg);
  if (!PORT.test(arg) || AGENT.test(arg) || !isOther) return [];
  const [, plain, quoted] = ID.exec(arg) ?? [];
  const id = plain ?? quoted;
  return id === undefined ? [] : [id];
}
