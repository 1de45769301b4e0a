import type {
  CgroupContainer,
  CgroupMachine,
  CgroupPlace,
  CgroupPod,
  CgroupUnit,
} from './location.js';

/** The places of a path, as they are found from left to right. */
export class Chain {
  readonly places: CgroupPlace[] = [];
  unit: CgroupUnit | null = null;
  container: CgroupContainer | null = null;
  pod: CgroupPod | null = null;
  machine: CgroupMachine | null = null;
  /** The position after the last pod: what is there is directly in the pod. */
  endOfPod = -1;

  addUnit(unit: CgroupUnit): void {
    this.unit = unit;
    this.places.push({ kind: 'unit', ...unit });
  }

  addSlice(name: string): void {
    this.places.push({ kind: 'slice', name });
  }

  addContainer(container: CgroupContainer): void {
    this.container = container;
    this.places.push({ kind: 'container', ...container });
  }

  /** `end`: the position after it. */
  addPod(pod: CgroupPod, end: number): void {
    this.pod = pod;
    this.endOfPod = end;
    this.places.push({ kind: 'pod', ...pod });
  }

  addMachine(machine: CgroupMachine): void {
    this.machine = machine;
    this.places.push({ kind: 'machine', ...machine });
  }

  addContainerMonitor(container: CgroupContainer): void {
    this.places.push({ kind: 'monitor', of: { kind: 'container', ...container } });
  }

  addMachineMonitor(machine: CgroupMachine): void {
    this.places.push({ kind: 'monitor', of: { kind: 'machine', ...machine } });
  }
}
