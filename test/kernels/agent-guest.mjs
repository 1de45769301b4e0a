// A small Linux guest in which QEMU's guest agent runs: prints where its kernel and its initramfs are.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { AptRoot } from './apt.mjs';
import { Initramfs } from './cpio.mjs';
import { fetchKernel } from './debian-kernel.mjs';
import { cacheFolder } from './folders.mjs';
import { inUsr, librariesOf, SUITE, which } from './userland.mjs';

const ARCH = 'x64';

/** Debian's stable one. */
const KERNEL = '6.12';

const PACKAGE = 'qemu-guest-agent';

/** The agent is at the second serial port, which takes no module; shutdown(8) is what it calls. */
const INIT = `#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
/usr/sbin/qemu-ga -d -m isa-serial -p /dev/ttyS1 -t /run -f /run/qemu-ga.pid
echo READY
while :; do busybox sleep 1000; done
`;
const SHUTDOWN = `#!/bin/sh
busybox sync
busybox poweroff -f
`;

/** Debian's agent, which takes the libraries of a host that has QEMU. */
function fetchAgent() {
  const file = join(cacheFolder('agent'), 'usr', 'sbin', 'qemu-ga');
  if (!existsSync(file)) {
    const apt = new AptRoot('agent', { arch: ARCH, suites: [SUITE] });
    apt.extract(PACKAGE, cacheFolder('agent'), ['./usr/sbin/qemu-ga']);
  }
  return file;
}

/** A copy of it, so that the network is asked once. */
function findKernel() {
  const cached = join(cacheFolder('agent'), 'vmlinuz');
  if (!existsSync(cached)) {
    const partial = `${cached}.${process.pid}`;
    writeFileSync(partial, readFileSync(fetchKernel(KERNEL).file));
    renameSync(partial, cached);
  }
  return cached;
}

function buildImage(agent) {
  const initramfs = new Initramfs();
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) initramfs.link(`/${name}`, `usr/${name}`);
  for (const folder of ['/proc', '/sys', '/dev', '/run', '/tmp', '/etc']) initramfs.folder(folder);
  initramfs.device('/dev/console', 5, 1);
  initramfs.copy(realpathSync(which('busybox')), '/usr/bin/busybox');
  initramfs.link('/usr/bin/sh', 'busybox');
  initramfs.copy(agent, '/usr/sbin/qemu-ga');
  for (const library of librariesOf([agent])) initramfs.copy(realpathSync(library), inUsr(library));
  initramfs.file('/init', INIT, 0o755);
  initramfs.file('/usr/sbin/shutdown', SHUTDOWN, 0o755);
  return gzipSync(initramfs.toBuffer(), { level: 1 });
}

const kernel = findKernel();
const agent = fetchAgent();
const recipe = createHash('sha256')
  .update(readFileSync(import.meta.filename))
  .digest('hex');
const initramfs = join(cacheFolder('agent'), `initramfs-${recipe.slice(0, 12)}.gz`);
if (!existsSync(initramfs)) {
  const partial = `${initramfs}.${process.pid}`;
  rmSync(partial, { force: true });
  writeFileSync(partial, buildImage(agent));
  renameSync(partial, initramfs);
}
console.log(JSON.stringify({ kernel, initramfs }));
