import { locate, type CgroupLocation, type CgroupPlace, type LocationReason } from '../../src';

/** A place in a few words: `nginx.service in system.slice`, `container docker 3f2a…`. */
export function inWords(place: CgroupPlace): string {
  switch (place.kind) {
    case 'unit': {
      const { name, slice, manager, uid, session } = place;
      const whose = manager === 'system' ? '' : ` of ${manager}`;
      const user = uid === null ? '' : ` uid ${uid}`;
      return `${name} in ${slice}${whose}${user}${session === null ? '' : ` session ${session}`}`;
    }
    case 'slice':
      return `slice ${place.name}`;
    case 'container':
      return `container ${place.runtime ?? 'unknown'} ${place.id}`;
    case 'pod':
      return `pod ${place.manager} ${place.uid}`;
    case 'machine':
      return machineInWords(place);
    case 'monitor':
      return `monitor of ${inWords(place.of)}`;
  }
}

function machineInWords(place: CgroupPlace & { kind: 'machine' }): string {
  switch (place.manager) {
    case 'libvirt':
      return `machine libvirt ${place.driver} ${place.id} ${place.name}`;
    case 'proxmox':
      return `machine proxmox ${place.driver} ${place.name}`;
    default:
      return `machine ${place.manager} ${place.name}`;
  }
}

/** What a location must be like, whatever the path. */
export function expectSound(location: CgroupLocation): void {
  const { chain, unit, container, pod, machine, reason } = location;
  const last = (kind: CgroupPlace['kind']) => {
    const place = chain.findLast((each) => each.kind === kind);
    return place === undefined ? null : { ...place, kind: undefined };
  };
  expect({ unit, container, pod, machine }).toEqual({
    ...{ unit: last('unit'), container: last('container') },
    ...{ pod: last('pod'), machine: last('machine') },
  });
  if (chain.length === 0) expect(reason).not.toBeNull();
  expect(JSON.parse(JSON.stringify(location))).toEqual(location);
}

/** The ids of three containers. */
export const H = '3f2a9c1b04de5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c';
export const H2 = '9b1c0de5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c3f2ad';
export const H3 = 'c0ffee5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c3f2a9c';

/** A pod's uid, and as a slice has it. */
export const POD = '7b180868-7134-44c6-8b7a-4c6c9bf19f0d';
export const POD_ = POD.replaceAll('-', '_');

/** The path of a user's manager, and that in words. */
export const USER = '/user.slice/user-1000.slice/user@1000.service';
export const MANAGER = 'user@1000.service in user-1000.slice uid 1000';

/** A path, what it leads through, and why that may not be all. */
type Row = [path: string, places: string[], reason?: LocationReason];

/** Declares a test for each path. */
export function testPaths(title: string, table: Row[]): void {
  const rows = table.map(([path, places, reason]) => [path, places, reason ?? null] as const);
  describe(title, () => {
    test.each(rows)('%s', (path, places, reason) => {
      const location = locate(path);
      expect(location.chain.map(inWords)).toEqual(places);
      expect(location.reason).toBe(reason);
      expectSound(location);
    });
  });
}
