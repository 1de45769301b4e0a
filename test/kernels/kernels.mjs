// The kernels that are booted, by the names that `npm run test:kernels` takes.

const DEBIAN = 'http://deb.debian.org/debian';
const SECURITY = 'http://deb.debian.org/debian-security';

/** Of each the newest of its suites. */
export const KERNELS = {
  '5.10': { arch: 'x64', suites: [`${SECURITY} bullseye-security`] },
  6.1: { arch: 'x64', suites: [`${DEBIAN} bookworm`, `${SECURITY} bookworm-security`] },
  6.12: { arch: 'x64', suites: [`${DEBIAN} trixie`, `${SECURITY} trixie-security`] },
  sid: { arch: 'x64', suites: [`${DEBIAN} sid`] },
  experimental: { arch: 'x64', suites: [`${DEBIAN} experimental`] },
  'arm64-6.1': { arch: 'arm64', suites: [`${DEBIAN} bookworm`, `${SECURITY} bookworm-security`] },
  'arm64-6.12': { arch: 'arm64', suites: [`${DEBIAN} trixie`, `${SECURITY} trixie-security`] },
};

/** In CI: the oldest that is supported, Debian's stable, and the newest there is. */
export const CI = ['5.10', '6.12', 'experimental'];

/** What Debian calls them. */
export const DEBIAN_ARCH = { x64: 'amd64', arm64: 'arm64' };
