// The kernels that `npm run test:kernels` boots, by name.

const DEBIAN = 'http://deb.debian.org/debian';
const SECURITY = 'http://deb.debian.org/debian-security';

/** The newest kernel of its suites is used. */
export const KERNELS = {
  '5.10': { arch: 'x64', suites: [`${SECURITY} bullseye-security`] },
  6.1: { arch: 'x64', suites: [`${DEBIAN} bookworm`, `${SECURITY} bookworm-security`] },
  6.12: { arch: 'x64', suites: [`${DEBIAN} trixie`, `${SECURITY} trixie-security`] },
  sid: { arch: 'x64', suites: [`${DEBIAN} sid`] },
  experimental: { arch: 'x64', suites: [`${DEBIAN} experimental`] },
  'arm64-6.1': { arch: 'arm64', suites: [`${DEBIAN} bookworm`, `${SECURITY} bookworm-security`] },
  'arm64-6.12': { arch: 'arm64', suites: [`${DEBIAN} trixie`, `${SECURITY} trixie-security`] },
};

/** CI boots the oldest supported kernel, Debian's stable kernel, and the newest one. */
export const CI = ['5.10', '6.12', 'experimental'];

/** Debian's names of the architectures. */
export const DEBIAN_ARCH = { x64: 'amd64', arm64: 'arm64' };
