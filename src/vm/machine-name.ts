import { readFileSync } from 'node:fs';

import { locate } from '../where/locate.js';

/**
 * The name of the machine that this process runs or is in, as libvirt, Proxmox, LXC or systemd put it
 * into the path of its cgroup: the domain's name for `virsh`, the VMID for `qm`. `null`: no path of
 * the process names one, it is gone, or /proc hides it. Untrusted, like everything in a path.
 *
 * Reads the paths of all hierarchies: with cgroup v1, that of v2 often tells nothing.
 *
 * @see [Why a virtual machine ended](../../docs/virtual-machines.md)
 */
export function machineName(pid: number): string | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch {
    return null;
  }
  const paths = text.split('\n').map((line) => line.replace(/^\d+:[^:]*:/, ''));
  const names = paths.map((path) => locate(path).machine?.name ?? null);
  // Of v2, which comes last, rather than of another one.
  return names.findLast((name) => name !== null) ?? null;
}
