import { locate } from '../where/locate.js';

/** How many cgroups to remember; a host has some hundred, and a loop of jobs any number. */
const MOST = 4096;

interface Place {
  unit: string | null;
  container: string | null;
}

const NOWHERE: Place = { unit: null, container: null };

const known = new Map<string, Place>();

/** Where the processes of a cgroup run: in which unit and which container. */
function placeOf(cgroup: string | null): Place {
  if (cgroup === null) return NOWHERE;
  let place = known.get(cgroup);
  if (place === undefined) {
    const { unit, container } = locate(cgroup);
    place = { unit: unit?.name ?? null, container: container?.id ?? null };
    if (known.size >= MOST) known.clear();
    known.set(cgroup, place);
  }
  return place;
}

/** The innermost unit of systemd: `nginx.service`. */
export function unitOf(cgroup: string | null): string | null {
  return placeOf(cgroup).unit;
}

/** The id of the innermost container. */
export function containerOf(cgroup: string | null): string | null {
  return placeOf(cgroup).container;
}
