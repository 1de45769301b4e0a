import { basename } from 'node:path';

import { programOf, type Program } from '../process/executable.js';

/** Executables of hypervisors, as distributions and projects name them. */
const HYPERVISORS =
  /^(qemu(-.*)?|kvm|lkvm|vfkit|cloud-hypervisor.*|firecracker.*|crosvm|bhyve|stratovirt|krunvm|libkrun.*)$/;

/** Whether a program is a hypervisor that we know. */
export function isHypervisor({ path, args, kernel }: Program): boolean {
  const names = [path, args?.[0]].flatMap((each) => (each == null ? [] : [basename(each)]));
  return (names.length > 0 ? names : [kernel ?? '']).some((name) => HYPERVISORS.test(name));
}

/** The same for the program that a process runs now. */
export function runsHypervisor(pid: number): boolean {
  return isHypervisor(programOf(pid));
}
