// Lane: unit

import {
  containerMatcher,
  ProcessFilter,
  unitMatcher,
  unitName,
} from '../../src/cli/args/process-filter';
import type { CgroupContainer, ExitEvent } from '../../src';
import { H, H2, USER } from '../support/places';

test('a unit matches by name, with or without .service, by a glob, and from below it', () => {
  const sound = `${USER}/app.slice/pipewire.service`;
  for (const word of ['1000:pipewire', '1000:pipewire.service', '1000:pipe*', 'user@1000']) {
    expect(unitMatcher(['nginx', word])(sound)).toBe(true);
  }
  for (const word of ['pipewire', 'pipe*', '1001:pipewire']) {
    expect(unitMatcher([word])(sound)).toBe(false);
  }
  expect(unitMatcher(['pipewire.socket'])(sound)).toBe(false);
  expect(unitMatcher(['pipewire'])(null)).toBeNull();
  expect(['nginx', 'a.slice', 'a*'].map(unitName)).toEqual(['nginx.service', 'a.slice', 'a*']);
});

test('a container matches by the name that it had, by a glob, or by digits of its id', () => {
  const container: CgroupContainer = { runtime: 'docker', id: H, name: 'web-1' };
  const place = { cgroup: `/system.slice/docker-${H}.scope`, container };
  for (const word of ['web-1', 'web-*', H, H.slice(0, 4)]) {
    expect(containerMatcher([word])(place)).toBe(true);
  }
  for (const word of ['web', H.slice(0, 3)]) expect(containerMatcher([word])(place)).toBe(false);
  const elsewhere = { cgroup: '/system.slice/nginx.service', container: null };
  expect(containerMatcher(['web-1'])(elsewhere)).toBe(false);
  expect(containerMatcher(['web-1'])({ cgroup: null, container: null })).toBeNull();
});

test('a container also matches by the id of one around it', () => {
  const container: CgroupContainer = { runtime: 'docker', id: H2, name: null };
  const place = { cgroup: `/system.slice/docker-${H}.scope/docker/${H2}`, container };
  for (const word of [H, H.slice(0, 4)]) expect(containerMatcher([word])(place)).toBe(true);
  // What is in one may have any name.
  expect(containerMatcher([H2])(place)).toBeNull();
  // The name of the innermost one is not known.
  expect(containerMatcher(['web'])(place)).toBeNull();
  const named = { ...place, container: { ...container, name: 'db' } };
  expect(containerMatcher(['db'])(named)).toBe(true);
  expect(containerMatcher(['web'])(named)).toBe(false);
});

test('--container takes the name that an event has, even if the container is gone by now', () => {
  const none = { names: [], uids: [], cgroups: [], units: [], parents: [] };
  const filter = new ProcessFilter({ ...none, containers: ['web-1'] });
  const container: CgroupContainer = { runtime: 'docker', id: H, name: 'web-1' };
  const event = { pid: 1, name: 'a', program: 'a', uid: 0, parentPid: 1, container };
  expect(filter.matches({ ...event, cgroup: `/docker/${H}` } as unknown as ExitEvent)).toBe(true);
  expect(filter.untold).toBe(0);
});
