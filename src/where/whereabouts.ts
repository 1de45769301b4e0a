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
  /** From when on it is looked up again, by performance.now(): a container may be renamed. */
  staleAtMs: number;
}

const NO_PATH: Located = {
  whereabouts: NOWHERE,
  chain: Object.freeze({ units: Object.freeze([]), reason: 'no-path' }),
  staleAtMs: Infinity,
};

/** How many paths to remember. */
const MOST = 4096;
/** For how long the name of a container is used again. */
const NAME_MS = 5000;

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
  if (cgroup === null) return NO_PATH;
  if (cgroup === lastPath && !isStale(last)) return last;
  let found = known.get(cgroup);
  if (found === undefined || isStale(found)) {
    found = find(cgroup);
    if (known.size >= MOST) known.clear();
    known.set(cgroup, found);
  }
  lastPath = cgroup;
  last = found;
  return found;
}

function isStale({ staleAtMs }: Located): boolean {
  return staleAtMs !== Infinity && performance.now() >= staleAtMs;
}

function find(cgroup: string): Located {
  const { chain, unit, container, pod, machine, reason } = locate(cgroup);
  const places = chain.flatMap((place) => (place.kind === 'unit' ? [place.name] : []));
  const units = [...new Set([...slicesOf(cgroup), ...places])];
  // What a user's manager has made may have any name; the files that we know are not its.
  const isOfUser = chain.some((place) => place.kind === 'unit' && place.manager !== 'system');
  const name = container === null || isOfUser ? null : containerName(container);
  const whereabouts = Object.freeze({
    unit: unit?.name ?? null,
    container: container && Object.freeze({ ...container, name }),
    pod: pod && Object.freeze(pod),
    machine: machine && Object.freeze(machine),
  });
  const staleAtMs = name === null ? Infinity : performance.now() + NAME_MS;
  return { whereabouts, chain: Object.freeze({ units: Object.freeze(units), reason }), staleAtMs };
}

/** Those that the path leads through before its first unit, and a user's manager among them. */
function slicesOf(cgroup: string): string[] {
  const slices: string[] = [];
  for (const segment of cgroup.split('/').slice(1)) {
    const isManager = /^user@\d+\.service$/.test(segment);
    if (!isManager && !segment.endsWith('.slice')) break;
    slices.push(segment);
  }
  return slices;
}
