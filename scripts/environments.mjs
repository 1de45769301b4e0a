// The environments of users in which `npm run test:environments` runs the tests.

const NOBODY = 65534;

const NO_PRIVILEGES = [
  'setpriv',
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  '--clear-groups',
  '--bounding-set=-all',
  '--inh-caps=-all',
];

const ONLY_CGROUP2 =
  'umount --recursive --lazy /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && exec "$@"';

/** Per environment: what to put before the command, and what it needs while the command runs. */
export const ENVIRONMENTS = {
  root: {},
  'pids-4915': { pidsMax: 4915 },
  'pids-600': { pidsMax: 600 },
  load: { busy: 4 },
  nobody: { prefix: NO_PRIVILEGES, owner: NOBODY },
  'cgroup2-only': {
    prefix: ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', ONLY_CGROUP2, 'sh'],
  },
  // Only what npm fetched for the clone before is available.
  'no-network': { prefix: ['unshare', '--net'], isOffline: true },
};
