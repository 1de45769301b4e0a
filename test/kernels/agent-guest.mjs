// A small Linux guest that runs QEMU's guest agent. Prints the paths of its kernel and its
// initramfs.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { AptRoot } from './apt.mjs';
import { Initramfs } from './cpio.mjs';
import { fetchKernel } from './debian-kernel.mjs';
import { cacheFolder } from './folders.mjs';
import { inUsr, librariesOf, SUITE, which } from './userland.mjs';

const ARCH = 'x64';

/** Debian's stable kernel, which has the driver of virtio-serial ports built in. */
const KERNEL = '6.12';

/** Without udev the port has no name, but it is the only one. */
const INIT = `#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
/usr/sbin/qemu-ga -d -m virtio-serial -p /dev/vport*p1 -t /run -f /run/qemu-ga.pid
echo READY
while :; do busybox sleep 1000; done
`;

/** The command that the agent runs. */
const SHUTDOWN = `#!/bin/sh
busybox sync
busybox poweroff -f
`;

/** Debian's agent. It uses the libraries of this host, which has them for its own QEMU. */
function fetchAgent() {
  const folder = cacheFolder('agent', 'package');
  const file = join(folder, 'usr', 'sbin', 'qemu-ga');
  if (!existsSync(file)) {
    const apt = new AptRoot('agent', { arch: ARCH, suites: [SUITE] });
    apt.extract('qemu-guest-agent', folder, ['./usr/sbin/qemu-ga']);
  }
  return file;
}

function buildInitramfs() {
  const initramfs = new Initramfs();
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) initramfs.link(`/${name}`, `usr/${name}`);
  for (const folder of ['/proc', '/sys', '/dev', '/run', '/tmp', '/etc']) initramfs.folder(folder);
  initramfs.device('/dev/console', 5, 1);
  initramfs.copy(realpathSync(which('busybox')), '/usr/bin/busybox');
  initramfs.link('/usr/bin/sh', 'busybox');
  const agent = fetchAgent();
  initramfs.copy(agent, '/usr/sbin/qemu-ga');
  for (const library of librariesOf([agent])) initramfs.copy(realpathSync(library), inUsr(library));
  initramfs.file('/init', INIT, 0o755);
  initramfs.file('/usr/sbin/shutdown', SHUTDOWN, 0o755);
  return gzipSync(initramfs.toBuffer(), { level: 1 });
}

// Built once per version of this file, so that later runs need no network.
const recipe = createHash('sha256')
  .update(readFileSync(import.meta.filename))
  .digest('hex');
const folder = join(cacheFolder('agent'), recipe.slice(0, 12));
if (!existsSync(folder)) {
  const partial = `${folder}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  copyFileSync(fetchKernel(KERNEL).file, join(partial, 'vmlinuz'));
  writeFileSync(join(partial, 'initramfs.gz'), buildInitramfs());
  renameSync(partial, folder);
}
console.log(
  JSON.stringify({ kernel: join(folder, 'vmlinuz'), initramfs: join(folder, 'initramfs.gz') }),
);
