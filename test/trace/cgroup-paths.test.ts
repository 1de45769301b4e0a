// Lane: unit

import { CgroupPaths } from '../../src/trace/cgroup-paths';

/** What the addon answers, and which ids it was asked for. */
function paths(known: Map<number, string>) {
  const asked: number[] = [];
  const cgroups = new CgroupPaths((id) => {
    asked.push(id);
    return known.get(id);
  });
  return { cgroups, asked };
}

test('a path that becomes known later is told from then on', () => {
  const known = new Map<number, string>();
  const { cgroups } = paths(known);
  expect([cgroups.path(7), cgroups.path(7)]).toEqual([null, null]);
  known.set(7, '/a.slice');
  expect([cgroups.path(7), cgroups.path(7)]).toEqual(['/a.slice', '/a.slice']);
});

test('a path that is known is asked for once, and stays known', () => {
  const known = new Map([
    [7, '/a.slice'],
    [8, '/b.slice'],
  ]);
  const { cgroups, asked } = paths(known);
  const read = () => [7, 7, 8, 7].map((id) => cgroups.path(id));
  expect(read()).toEqual(['/a.slice', '/a.slice', '/b.slice', '/a.slice']);
  known.clear();
  expect(read()).toEqual(['/a.slice', '/a.slice', '/b.slice', '/a.slice']);
  expect(asked).toEqual([7, 8]);
});

test('id 0 is none', () => {
  const { cgroups, asked } = paths(new Map([[0, '/']]));
  expect(cgroups.path(0)).toBeNull();
  expect(asked).toEqual([]);
});
