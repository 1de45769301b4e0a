// Lane: unit

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  containerIdsOf,
  isInContainer,
  isInUnit,
  KnownPlaces,
  unitsOf,
  whereaboutsOf,
} from '../../src/where/whereabouts';

import { H, H2, POD, USER } from '../support/places';

const NGINX = '/system.slice/nginx.service';
const SOUND = '/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service';

test('a path has all units that it leads through, the outermost first', () => {
  expect(unitsOf(SOUND)).toEqual({
    units: [
      ...['user.slice', 'user-1000.slice', 'user@1000.service', 'app.slice', 'pipewire.service'],
    ],
    reason: null,
  });
  expect(whereaboutsOf(SOUND).unit).toBe('pipewire.service');
  expect(unitsOf(NGINX).units).toEqual(['system.slice', 'nginx.service']);
});

test('it says why a path has no unit', () => {
  expect(unitsOf(null)).toEqual({ units: [], reason: 'no-path' });
  expect(unitsOf('/')).toEqual({ units: [], reason: 'root' });
  expect(whereaboutsOf(null).unit).toBeNull();
});

test('a path has all containers that it leads through, and an event its own', () => {
  const cgroup = `/docker/${H}/docker/${H2}`;
  const { container } = whereaboutsOf(cgroup);
  expect(containerIdsOf({ cgroup, container })).toEqual([H, H2]);
  expect(containerIdsOf({ cgroup: NGINX, container: null })).toEqual([]);
  expect(containerIdsOf({ cgroup: null, container })).toEqual([H2]);
});

describe('a name counts only in the part of the hierarchy of whom it was asked of', () => {
  const OURS = '/user.slice/user-1000.slice/user@1000.service';
  const isIn = (path: string, uid: number | null, name: string) =>
    isInUnit(path, uid, (each) => each === name);
  const hasId = (cgroup: string, uid: number | null, id: string) =>
    isInContainer({ cgroup, container: whereaboutsOf(cgroup).container }, uid, (each) =>
      each.startsWith(id),
    );

  test.each<[string, string, number | null, string, boolean]>([
    ['the system’s', NGINX, null, 'nginx.service', true],
    ['what is below it', `${NGINX}/worker`, null, 'nginx.service', true],
    ['its slice', NGINX, null, 'system.slice', true],
    ['not a user’s', NGINX, 1000, 'nginx.service', false],
    ['a user’s', `${OURS}/app.slice/nginx.service`, 1000, 'nginx.service', true],
    ['not another user’s', `${OURS}/app.slice/nginx.service`, 1001, 'nginx.service', false],
    ['not the system’s', `${OURS}/app.slice/nginx.service`, null, 'nginx.service', false],
    [
      'the user’s manager, which is the system’s',
      `${OURS}/app.slice/nginx.service`,
      null,
      'user@1000.service',
      true,
    ],
    ['the user’s slice', `${OURS}/app.slice/nginx.service`, 1000, 'app.slice', true],
    [
      'no slice of the system that a user has named',
      `${OURS}/nginx.slice`,
      null,
      'nginx.slice',
      false,
    ],
    [
      'no manager that a user has named',
      `${OURS}/user@0.service/nginx.service`,
      0,
      'nginx.service',
      false,
    ],
    ['no unit in a unit', '/system.slice/web.service/nginx.service', null, 'nginx.service', false],
    [
      'no unit in a container',
      `/system.slice/docker-${H}.scope/system.slice/nginx.service`,
      null,
      'nginx.service',
      false,
    ],
    [
      'no unit in a machine',
      '/machine.slice/machine-web.scope/payload/system.slice/nginx.service',
      null,
      'nginx.service',
      false,
    ],
  ])('%s: %s', (_, path, uid, name, expected) => {
    expect(isIn(path, uid, name)).toBe(expected);
  });

  test.each<[string, string, number | null, string, boolean]>([
    ['the host’s', `/system.slice/docker-${H}.scope`, null, H.slice(0, 12), true],
    ['not a user’s', `/system.slice/docker-${H}.scope`, 1000, H, false],
    ['one in a service', `/system.slice/web.service/libpod-payload-${H}`, null, H, true],
    ['a user’s', `${OURS}/user.slice/libpod-${H}.scope/container`, 1000, H, true],
    ['not the host’s', `${OURS}/app.slice/docker-${H}.scope`, null, H, false],
    ['the outer one', `/docker/${H}/docker/${H2}`, null, H, true],
    ['none in another one', `/docker/${H}/docker/${H2}`, null, H2, false],
  ])('container, %s: %s', (_, path, uid, id, expected) => {
    expect(hasId(path, uid, id)).toBe(expected);
  });
});

test('whatever was asked before, each path has its own answer, which nobody can change', () => {
  for (const path of [NGINX, SOUND, null, SOUND, NGINX, NGINX]) {
    expect(unitsOf(path).units.at(-1) ?? null).toBe(whereaboutsOf(path).unit);
  }
  expect(Object.isFrozen(unitsOf(SOUND)) && Object.isFrozen(unitsOf(SOUND).units)).toBe(true);
});

describe('the name of a container', () => {
  let root: string;
  let now = 0;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'exitwatch-places-'));
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    rmSync(root, { recursive: true });
  });

  const folderOf = (id: string) => join(root, 'var/lib/docker/containers', id);
  const write = (id: string, name: string) => {
    mkdirSync(folderOf(id), { recursive: true });
    writeFileSync(join(folderOf(id), 'config.v2.json'), JSON.stringify({ Name: `/${name}` }));
  };
  const nameIn = (places: KnownPlaces, path: string) => places.at(path).whereabouts.container?.name;

  test('stays known when the container is gone', () => {
    const places = new KnownPlaces(root);
    write(H, 'web');
    expect(nameIn(places, `/docker/${H}`)).toBe('web');
    rmSync(folderOf(H), { recursive: true });
    now += 10_000;
    expect(nameIn(places, `/docker/${H}`)).toBe('web');
    expect(nameIn(places, `/docker/${H}`)).toBe('web');
  });

  test('is looked for again after 5 s, whether it was found or not', () => {
    const places = new KnownPlaces(root);
    expect(nameIn(places, `/docker/${H}`)).toBeNull();
    write(H, 'web');
    now += 4999;
    expect(nameIn(places, `/docker/${H}`)).toBeNull();
    now += 1;
    expect(nameIn(places, `/docker/${H}`)).toBe('web');
    write(H, 'shop');
    now += 5000;
    expect(nameIn(places, `/docker/${H}`)).toBe('shop');
  });

  test.each([
    ['the host itself', `/docker/${H}`, 'web'],
    ['a service of the host', `/system.slice/docker-${H}.scope`, 'web'],
    ['kubelet', `/kubepods/burstable/pod${POD}/docker-${H}.scope`, 'web'],
    ['the host, with a user in it', `/docker/${H}${USER}/app.slice/a.service`, 'web'],
    ['another container', `/docker/${H2}/docker/${H}`, null],
    ['a container of LXC', `/lxc.payload.guest/docker/${H}`, null],
    ['a machine', `/machine.slice/machine-guest.scope/docker/${H}`, null],
    ['a user', `${USER}/user.slice/docker-${H}.scope`, null],
    ['who knows whom', `/../docker/${H}`, null],
  ])('is told if the container is one of %s: %s', (_, path, name) => {
    write(H, 'web');
    write(H2, 'outer');
    expect(nameIn(new KnownPlaces(root), path)).toBe(name);
  });
});
