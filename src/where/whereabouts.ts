import { containerName } from './container-names.js';
import { locate } from './locate.js';
import type { CgroupContainer, CgroupMachine, CgroupPod, LocationReason } from './location.js';

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

/** The units that a path leads through. */
export interface UnitChain {
  /** The outermost first: `['user@1000.service', 'pipewire.service']`. */
  units: readonly string[];
  /** Why there may be more, or anything else that the path does not tell. */
  reason: LocationReason | null;
}

interface Located {
  whereabouts: Whereabouts;
  chain: UnitChain;
}

const NO_PATH: Located = {
  whereabouts: NOWHERE,
  chain: Object.freeze({ units: Object.freeze([]), reason: 'no-path' }),
};

/** How many paths to remember. */
const MOST = 4096;

const known = new Map<string, Located>();
/** Consecutive exits are mostly in the same cgroup. */
let lastPath: string | null = null;
let last = NO_PATH;

/** The same for each event with this path: frozen. */
export function whereaboutsOf(cgroup: string | null): Whereabouts {
  return located(cgroup).whereabouts;
}

/** All units that the path names, not only the innermost. The same for each path: frozen. */
export function unitsOf(cgroup: string | null): UnitChain {
  return located(cgroup).chain;
}

function located(cgroup: string | null): Located {
  if (cgroup === lastPath) return last;
  if (cgroup === null) return NO_PATH;
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

function find(cgroup: string): Located {
  const { chain, unit, container, pod, machine, reason } = locate(cgroup);
  const units = chain.flatMap((place) => (place.kind === 'unit' ? [place.name] : []));
  const whereabouts = Object.freeze({
    unit: unit?.name ?? null,
    container: container && Object.freeze({ ...container, name: containerName(container) }),
    pod: pod && Object.freeze(pod),
    machine: machine && Object.freeze(machine),
  });
  return { whereabouts, chain: Object.freeze({ units: Object.freeze(units), reason }) };
}
