import { unitsOf, whereaboutsOf } from '../../src/where/whereabouts';

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

test('whatever was asked before, each path has its own answer, which nobody can change', () => {
  for (const path of [NGINX, SOUND, null, SOUND, NGINX, NGINX]) {
    expect(unitsOf(path).units.at(-1) ?? null).toBe(whereaboutsOf(path).unit);
  }
  expect(Object.isFrozen(unitsOf(SOUND)) && Object.isFrozen(unitsOf(SOUND).units)).toBe(true);
});
