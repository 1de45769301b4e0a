// Everything in a guest besides the package: Node.js, the tools that the tests call, and their
// libraries.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { AptRoot } from './apt.mjs';
import { cacheFolder } from './folders.mjs';
import { fetchNode } from './node-binary.mjs';

/** Tools that busybox lacks, or has in a different version. */
const TOOLS = [
  'bash',
  'dash',
  'mount',
  'umount',
  'prlimit',
  'setpriv',
  'unshare',
  'script',
  'taskset',
];

/**
 * The Debian packages from which these tools come for another architecture, with their
 * dependencies.
 */
const PACKAGES = [
  ...['busybox-static', 'bash', 'dash', 'mount', 'util-linux', 'bsdutils'],
  ...['libblkid1', 'libcap-ng0', 'libmount1', 'libpcre2-8-0', 'libselinux1', 'libsmartcols1'],
  ...['libtinfo6', 'libudev1', 'zlib1g'],
];
export const SUITE = 'http://deb.debian.org/debian bookworm';

/** Adds them to an initramfs. */
export function addUserland(initramfs, arch) {
  for (const [path, target] of [
    ...['bin', 'sbin', 'lib', 'lib64'].map((name) => [`/${name}`, `usr/${name}`]),
    ['/usr/bin/sh', 'dash'],
  ])
    initramfs.link(path, target);
  for (const folder of ['/proc', '/sys', '/dev', '/run', '/root', '/etc', '/usr/sbin'])
    initramfs.folder(folder);
  initramfs.folder('/tmp', 0o1777);
  initramfs.device('/dev/console', 5, 1);
  initramfs.file('/etc/passwd', 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n');
  initramfs.file('/etc/group', 'root:x:0:\nnogroup:x:65534:\n');
  for (const [path, file] of arch === process.arch ? ofHost() : ofDebian(arch))
    initramfs.copy(realpathSync(file), path);
}

function* ofHost() {
  const programs = [process.execPath];
  for (const tool of TOOLS) programs.push(which(tool));
  yield ['/usr/bin/busybox', which('busybox')];
  yield ['/usr/bin/node', process.execPath];
  for (const program of programs.slice(1)) yield [`/usr/bin/${basename(program)}`, program];
  for (const library of librariesOf(programs)) {
    yield [inUsr(library), library];
    // Libraries that native modules may also link to.
    if (basename(library) !== 'libc.so.6') continue;
    for (const name of ['libdl.so.2', 'libpthread.so.0', 'librt.so.1', 'libutil.so.1'])
      yield [inUsr(join(dirname(library), name)), join(dirname(library), name)];
  }
}

export function which(tool) {
  const found = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']
    .map((folder) => join(folder, tool))
    .find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${tool} is not installed, but a guest requires it`);
  return found;
}

export function librariesOf(programs) {
  const listed = execFileSync('ldd', programs, { encoding: 'utf8' });
  return new Set([...listed.matchAll(/(?:=> |^\t)(\/\S+) \(/gm)].map(([, path]) => path));
}

export const inUsr = (path) => (path.startsWith('/usr/') ? path : `/usr${path}`);

function* ofDebian(arch) {
  const folder = join(cacheFolder('userland'), arch);
  if (!existsSync(folder)) {
    const apt = new AptRoot(`userland-${arch}`, { arch, suites: [SUITE] });
    for (const name of PACKAGES) apt.extract(name, folder);
  }
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const wanted = ['busybox', ...TOOLS];
  for (const file of files) {
    const path = join(file.parentPath ?? file.path, file.name);
    if (file.isDirectory()) continue;
    if (wanted.includes(file.name) && /\/s?bin$/.test(file.parentPath ?? file.path))
      yield [`/usr/bin/${file.name}`, path];
    if (/\.so\.\d+$/.test(file.name)) yield [`/usr/lib/${file.name}`, path];
  }
  // The cross compiler's own libraries and dynamic linker are at least as new as those of Debian.
  const sysroot = '/usr/aarch64-linux-gnu/lib';
  for (const name of readdirSync(sysroot).filter((file) => /\.so\.\d+$/.test(file)))
    yield [`/usr/lib/${name}`, join(sysroot, name)];
  yield ['/usr/bin/node', fetchNode(arch)];
}
