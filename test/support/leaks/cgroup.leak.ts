import { mkdirSync } from 'node:fs';

import { cgroupName } from '../cgroup2';

it('leaves a cgroup', () => {
  mkdirSync(cgroupName());
});
