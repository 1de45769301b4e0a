import { basename } from 'node:path';

import { programOf, type Program } from '../process/executable.js';

/** Executables of hypervisors, as distributions and projects name them. */
const HYPERVISORS =
  /^(qemu(-.*)?|kvm|lkvm|vfkit|cloud-hyperviso.*|firecracker.*|crosvm|bhyve|stratovirt|krun(vm|kit)|libkrun.*)$/;

/** Whether a program is a hypervisor that we know, or nobody can see what it is, as on macOS. */
export function isHypervisor({ path, args, kernel }: Program): boolean {
  if (path === null && args === null && kernel === null) return true;
  const names = [path, args?.[0]].flatMap((each) =>
    each == null ? [] : [basename(each).replace(/^memfd:/, '')],
  );
  return (names.length > 0 ? names : [kernel ?? '']).some((name) => HYPERVISORS.test(name));
}

/** The same for the program that a process runs now. */
export function runsHypervisor(pid: number): boolean {
  return isHypervisor(programOf(pid));
}
