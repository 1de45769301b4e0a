import { containerName } from './container-names.js';
import { locate } from './locate.js';
import type {
  CgroupContainer,
  CgroupLocation,
  CgroupMachine,
  CgroupPod,
  LocationReason,
} from './location.js';
import type { OwnedName } from './owned-name.js';

/**
 * What the path of a process's cgroup says about where it runs. It is `null` where the path names
 * none, or is unknown; {@link locate} says why, and names the places around it.
 */
export type Whereabouts = {
  /**
   * The innermost unit of systemd, as `systemctl` prints it: `nginx.service`. On a host that has v1
   * hierarchies as well, what runs in a container may have that of its runtime: `docker.service`.
   */
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
  /** The units of the system and of users, and not those in containers and machines. */
  ownedUnits: readonly OwnedName[];
  /** The ids of the containers that the path leads through. */
  containerIds: readonly string[];
  /** Those of the host and of users, and not those in other containers and in machines. */
  ownedContainerIds: readonly OwnedName[];
  /**
   * From when on it is looked up again, by performance.now(): a container may be renamed, or its
   * runtime may write its file when it runs already.
   */
  staleAtMs: number;
}

const NO_PATH: Located = {
  whereabouts: NOWHERE,
  chain: Object.freeze({ units: Object.freeze([]), reason: 'no-path' }),
  ownedUnits: Object.freeze([]),
  containerIds: Object.freeze([]),
  ownedContainerIds: Object.freeze([]),
  staleAtMs: Infinity,
};

/** How many paths to remember. */
const MOST = 4096;
/** For how long the name of a container is used again, or that none was found. */
const NAME_MS = 5000;

/** What was found for each path. */
export class KnownPlaces {
  readonly #root: string;
  readonly #known = new Map<string, Located>();
  /** Consecutive exits are mostly in the same cgroup. */
  #lastPath: string | null = null;
  #last = NO_PATH;

  /** `root`: what has the files of container runtimes. */
  constructor(root: string) {
    this.#root = root;
  }

  at(cgroup: string | null): Located {
    if (cgroup === null) return NO_PATH;
    if (cgroup === this.#lastPath && !isStale(this.#last)) return this.#last;
    let found = this.#known.get(cgroup);
    if (found === undefined || isStale(found)) {
      // Files that are gone do not take back what they said.
      found = find(cgroup, this.#root, found?.whereabouts.container?.name ?? null);
      if (this.#known.size >= MOST) this.#known.clear();
      this.#known.set(cgroup, found);
    }
    this.#lastPath = cgroup;
    this.#last = found;
    return found;
  }
}

const ours = new KnownPlaces('/');

/** The same for each event with this path: frozen. */
export function whereaboutsOf(cgroup: string | null): Whereabouts {
  return ours.at(cgroup).whereabouts;
}

/** All units that the path names, not only the innermost. The same for each path: frozen. */
export function unitsOf(cgroup: string | null): UnitChain {
  return ours.at(cgroup).chain;
}

/**
 * The ids of all containers that a process is in, not only of the innermost, which an event may have
 * without a path.
 */
export function containerIdsOf({
  cgroup,
  container,
}: Pick<Whereabouts, 'container'> & { cgroup: string | null }): readonly string[] {
  const ids = ours.at(cgroup).containerIds;
  return container === null || ids.includes(container.id) ? ids : [...ids, container.id];
}

/**
 * Whether the path leads through a unit of the system, or of this user's manager. Others may give their cgroups the same
 * name: users, containers and machines.
 *
 * @param isName whether it is the name of such a unit
 */
export function isInUnit(
  cgroup: string | null,
  uid: number | null,
  isName: (name: string) => boolean,
): boolean {
  return ours.at(cgroup).ownedUnits.some((unit) => unit.uid === uid && isName(unit.name));
}

/**
 * The same of a container that the host itself has made, or a user without privileges, in the user's part of the hierarchy.
 *
 * @param isId whether it is its id
 */
export function isInContainer(
  { cgroup, container }: Pick<Whereabouts, 'container'> & { cgroup: string | null },
  uid: number | null,
  isId: (id: string) => boolean,
): boolean {
  const { containerIds, ownedContainerIds } = ours.at(cgroup);
  // The path does not tell where it is.
  const isElsewhere = container !== null && !containerIds.includes(container.id);
  if (isElsewhere && uid === null && isId(container.id)) return true;
  return ownedContainerIds.some((each) => each.uid === uid && isId(each.name));
}

/** The innermost unit of the system or of a user's manager; `null`: there is none. */
export function ownedUnitOf(cgroup: string | null): OwnedName | null {
  return ours.at(cgroup).ownedUnits.at(-1) ?? null;
}

/** Whose innermost unit and container these are; `null`: the system's, or of what is in a container or machine. */
export function ownersOf(cgroup: string | null) {
  const { ownedUnits, ownedContainerIds, whereabouts } = ours.at(cgroup);
  const unit = ownedUnits.at(-1);
  const container = ownedContainerIds.at(-1);
  return {
    unit: unit?.name === whereabouts.unit ? unit.uid : null,
    container: container?.name === whereabouts.container?.id ? (container?.uid ?? null) : null,
  };
}

function isStale({ staleAtMs }: Located): boolean {
  return staleAtMs !== Infinity && performance.now() >= staleAtMs;
}

/** `knownName`: that of the container so far. */
function find(cgroup: string, root: string, knownName: string | null): Located {
  const location = locate(cgroup);
  const { chain, unit, container, pod, machine, reason } = location;
  const places = chain.flatMap((place) => (place.kind === 'unit' ? [place.name] : []));
  const units = [...new Set([...slicesOf(cgroup), ...places])];
  const isNamed = container !== null && isOfHost(location);
  const name = isNamed ? (containerName(container, root) ?? knownName) : null;
  const whereabouts = Object.freeze({
    unit: unit?.name ?? null,
    container: container && Object.freeze({ ...container, name }),
    pod: pod && Object.freeze(pod),
    machine: machine && Object.freeze(machine),
  });
  const ids = chain.flatMap((place) => (place.kind === 'container' ? [place.id] : []));
  const owned = ownedIn(location);
  return {
    whereabouts,
    chain: Object.freeze({ units: Object.freeze(units), reason }),
    ownedUnits: [...ownedSlices(slicesOf(cgroup)), ...owned.units],
    containerIds: Object.freeze(ids),
    ownedContainerIds: owned.containerIds,
    staleAtMs: isNamed ? performance.now() + NAME_MS : Infinity,
  };
}

/**
 * Whether the container was made by the host itself. What a user's manager, a machine or another
 * container has made may have any id; the files that we know are not theirs.
 */
function isOfHost({ chain, reason }: CgroupLocation): boolean {
  if (reason === 'outside-namespace') return false;
  const before = chain.slice(
    0,
    chain.findLastIndex(({ kind }) => kind === 'container'),
  );
  return before.every((place) =>
    place.kind === 'unit'
      ? place.manager === 'system'
      : place.kind === 'slice' || place.kind === 'pod',
  );
}

/** What is not in another container or machine; a capsule's manager is nobody's. */
function ownedIn({ chain }: CgroupLocation) {
  const units: OwnedName[] = [];
  const containerIds: OwnedName[] = [];
  let uid: number | null = null;
  for (const place of chain) {
    if (place.kind === 'unit') {
      if (place.manager === 'capsule') break;
      if (place.manager === 'user') ({ uid } = place);
      units.push({ uid, name: place.name });
    }
    if (place.kind === 'container') containerIds.push({ uid, name: place.id });
    if (place.kind === 'container' || place.kind === 'machine') break;
  }
  return { units, containerIds };
}

/** What follows a user's manager is the user's. */
function ownedSlices(slices: readonly string[]): OwnedName[] {
  let uid: number | null = null;
  return slices.map((name) => {
    const slice = { uid, name };
    const [, manager] = MANAGER.exec(name) ?? [];
    if (manager !== undefined) uid = Number(manager);
    return slice;
  });
}

const MANAGER = /^user@(\d+)\.service$/;

/** Those that the path leads through before its first unit, and a user's manager among them. */
function slicesOf(cgroup: string): string[] {
  const slices: string[] = [];
  for (const segment of cgroup.split('/').slice(1)) {
    if (!MANAGER.test(segment) && !segment.endsWith('.slice')) break;
    slices.push(segment);
  }
  return slices;
}
