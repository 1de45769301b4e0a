import { containerName } from './container-names.js';
import { locate } from './locate.js';
import type { CgroupContainer, CgroupMachine, CgroupPod } from './location.js';

/**
 * What the path of a process's cgroup says about where it runs. It is `null` where the path names
 * none, or is unknown; {@link locate} says why, and names the places around it.
 */
export type Whereabouts = {
  /** The innermost unit of systemd, as `systemctl` prints it: `nginx.service`. */
  unit: string | null;
  /**
   * The innermost container. Its `name` is that of Docker, containerd, CRI-O or Podman, if their
   * files of this host tell it.
   */
  container: CgroupContainer | null;
  /** The innermost pod of Kubernetes or Podman. */
  pod: CgroupPod | null;
  /** The innermost virtual machine, or container that is like one. */
  machine: CgroupMachine | null;
};

export const NOWHERE: Whereabouts = Object.freeze({
  unit: null,
  container: null,
  pod: null,
  machine: null,
});

/** How many paths to remember. */
const MOST = 4096;

const known = new Map<string, Whereabouts>();
/** Consecutive exits are mostly in the same cgroup. */
let lastPath: string | null = null;
let last = NOWHERE;

/** The same for each event with this path: frozen. */
export function whereaboutsOf(cgroup: string | null): Whereabouts {
  if (cgroup === lastPath) return last;
  if (cgroup === null) return NOWHERE;
  let found = known.get(cgroup);
  if (found === undefined) {
    found = find(cgroup);
    if (known.size >= MOST) known.clear();
    known.set(cgroup, found);
  }
  lastPath = cgroup;
  last = found;
  return found;
}

function find(cgroup: string): Whereabouts {
  const { unit, container, pod, machine } = locate(cgroup);
  return Object.freeze({
    unit: unit?.name ?? null,
    container: container && Object.freeze({ ...container, name: containerName(container) }),
    pod: pod && Object.freeze(pod),
    machine: machine && Object.freeze(machine),
  });
}
