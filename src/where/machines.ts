import type { Chain } from './chain.js';
import type { CgroupMachine, LibvirtDriver } from './location.js';
import { instanceOf, unescapeUnit } from './unit-names.js';

/** A name that systemd-machined accepts. hostname_is_valid() of systemd's hostname-util.c. */
const MACHINE = /^\w(?:[\w.-]{0,62}\w)?$/;

/** virDomainDriverGenerateMachineName() of libvirt: driver, id and name. */
const LIBVIRT = /^(qemu|lxc|ch)-(?:embed-[0-9a-f]{8}-)?(\d{1,10})-(.+)$/;

/** virCgroupNewDomainPartition() of libvirt, for hosts without systemd. */
const OLD_LIBVIRT = /^(.+)\.libvirt-(qemu|lxc|ch)$/;

const MOST_PARTITIONS = 8;

/** What libvirt makes in the cgroup of a machine; later versions make it in `libvirt`. */
const LIBVIRT_PART = /^(?:emulator|vcpu\d{1,5}|iothread\d{1,5})$/;

/** A number of a virtual machine of Proxmox, from 100 on. */
const VMID = /^[1-9]\d{2,8}$/;

/** A name that a user has chosen: what changes a terminal or hides is no name for us. */
const VISIBLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,255}$/u;

/**
 * Adds the machine, or the machine's monitor, that this unit is for. `at`: the position after the
 * unit. Returns how many segments belong to it; `null`: the unit is for none.
 */
export function readMachineUnit(
  chain: Chain,
  unit: { name: string; slice: string },
  segments: readonly string[],
  at: number,
): number | null {
  const vmid = unit.name.replace(/\.scope$/, '');
  if (unit.slice === 'qemu.slice' && vmid !== unit.name && VMID.test(vmid)) {
    chain.addMachine({ manager: 'proxmox', driver: 'qemu', name: vmid });
    return 0;
  }
  const name = nspawnOf(unit.name) ?? machinedOf(unit.name);
  if (name === null) return null;
  // systemd-nspawn(1) splits its unit: itself, and the machine.
  if (segments[at] === 'payload') {
    chain.addMachine({ manager: 'nspawn', name });
    return 1;
  }
  if (segments[at] === 'supervisor') {
    chain.addMachineMonitor({ manager: 'nspawn', name });
    return 1;
  }
  if (nspawnOf(unit.name) !== null) return null;
  const machine = libvirtOf(name) ?? { manager: 'machined', name };
  chain.addMachine(machine);
  return machine.manager === 'libvirt' ? partsAt(segments, at) : 0;
}

/**
 * The machine of `systemd-nspawn@NAME.service`. machinectl(1) does not escape the name;
 * earlier versions did.
 */
function nspawnOf(unit: string): string | null {
  const instance = instanceOf(unit, 'systemd-nspawn');
  if (instance === null) return null;
  return [instance, unescapeUnit(instance)].find((name) => MACHINE.test(name)) ?? null;
}

/** The machine of `machine-NAME.scope`, which systemd-machined escapes. */
function machinedOf(unit: string): string | null {
  const escaped = /^machine-(.+)\.scope$/.exec(unit)?.[1];
  const name = unescapeUnit(escaped ?? '');
  return MACHINE.test(name) ? name : null;
}

function libvirtOf(text: string): CgroupMachine | null {
  const [, driver, id, name] = LIBVIRT.exec(text) ?? [];
  if (driver === undefined || name === undefined) return null;
  return { manager: 'libvirt', driver: driver as LibvirtDriver, id: Number(id), name };
}

function partsAt(segments: readonly string[], at: number): number {
  const length = segments[at] === 'libvirt' ? 1 : 0;
  return LIBVIRT_PART.test(segments[at + length] ?? '') ? length + 1 : length;
}

/**
 * Adds the machine, or the machine's monitor, that is at this position without systemd. `isTop`:
 * nothing but a container or a machine is above it. Returns how many segments belong to it; 0: there
 * is none.
 */
export function readMachine(
  chain: Chain,
  segments: readonly string[],
  at: number,
  isTop: boolean,
): number {
  return readLxc(chain, segments, at, isTop) || readOldLibvirt(chain, segments, at);
}

/**
 * `lxc.payload.NAME` and `lxc.monitor.NAME`, first `lxc.payload/NAME`, before that `lxc/NAME`
 * (cgfsng.c of LXC). Proxmox has `lxc/VMID/ns` and `lxc.monitor/VMID` (LXC.pm of pve-container);
 * the latter may also be LXC's.
 */
function readLxc(chain: Chain, segments: readonly string[], at: number, isTop: boolean): number {
  const segment = segments[at] ?? '';
  const next = segments[at + 1] ?? '';
  const role = /^lxc\.(payload|monitor)(?:\.|$)/.exec(segment);
  if (role !== null) {
    const [start, kind] = role;
    const isOne = start.endsWith('.');
    const name = isOne ? segment.slice(start.length) : next;
    if (!VISIBLE.test(name)) return 0;
    if (kind === 'payload') chain.addMachine({ manager: 'lxc', name });
    else chain.addMachineMonitor({ manager: 'lxc', name });
    return isOne ? 1 : 2;
  }
  if (segment !== 'lxc' || !VISIBLE.test(next)) return 0;
  if (VMID.test(next) && segments[at + 2] === 'ns') {
    chain.addMachine({ manager: 'proxmox', driver: 'lxc', name: next });
    return 3;
  }
  if (!isTop) return 0;
  chain.addMachine({ manager: 'lxc', name: next });
  return 2;
}

/**
 * `machine/qemu-1-NAME.libvirt-qemu`, first `machine/NAME.libvirt-qemu`, below partitions
 * (`production.partition`) where the administrator made some.
 */
function readOldLibvirt(chain: Chain, segments: readonly string[], at: number): number {
  let end = at;
  if (segments[end] === 'machine') end++;
  while (end - at <= MOST_PARTITIONS && segments[end]?.endsWith('.partition') === true) end++;
  const [, escaped = '', driver] = OLD_LIBVIRT.exec(segments[end] ?? '') ?? [];
  const name = escaped.startsWith('_') ? escaped.slice(1) : escaped;
  if (driver === undefined || !VISIBLE.test(name)) return 0;
  const machine = libvirtOf(name);
  if (machine?.manager === 'libvirt' && machine.driver === driver) chain.addMachine(machine);
  else chain.addMachine({ manager: 'libvirt', driver: driver as LibvirtDriver, id: null, name });
  end++;
  return end - at + partsAt(segments, end);
}
