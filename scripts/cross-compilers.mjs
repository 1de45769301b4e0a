/** What the names of Debian's compilers begin with, for the architectures that are published. */
export const PREFIXES = { x64: 'x86_64-linux-gnu-', arm64: 'aarch64-linux-gnu-' };
