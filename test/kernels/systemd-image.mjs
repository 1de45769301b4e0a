// A guest with this host's systemd and runc, and the package.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

import { Initramfs } from './cpio.mjs';
import { REPOSITORY } from './folders.mjs';
import { foldersOf } from './node-modules.mjs';
import { addUserland, inUsr, librariesOf, which } from './userland.mjs';

const GUEST = join(import.meta.dirname, 'guest-systemd');

const SYSTEMD = '/usr/lib/systemd';

const PROGRAMS = [
  ...['systemd', 'systemd-journald', 'systemd-shutdown', 'systemd-cgroups-agent'].map((name) =>
    join(SYSTEMD, name),
  ),
  ...['systemctl', 'journalctl', 'runc', 'script', 'sleep', 'stty'].map(which),
];

/** Only what these need is started: no udev, no login, no network. */
const UNITS = [
  ...['basic', 'final', 'local-fs', 'local-fs-pre', 'multi-user', 'paths', 'poweroff'].map(
    (name) => `${name}.target`,
  ),
  ...['shutdown', 'slices', 'sockets', 'swap', 'sysinit', 'timers', 'umount'].map(
    (name) => `${name}.target`,
  ),
  ...['systemd-journald.service', 'systemd-journald.socket', 'systemd-journald-dev-log.socket'],
  'systemd-poweroff.service',
];

const USERS =
  'root:x:0:0::/root:/bin/sh\ndeploy:x:1000:1000::/:/bin/sh\nnobody:x:65534:65534::/:\n';
const GROUPS = 'root:x:0:\ndeploy:x:1000:\nsystemd-journal:x:101:\nadm:x:4:\nnogroup:x:65534:\n';

/** What the guest boots with; `files`: by their paths there. */
export function buildSystemdImage(files) {
  const initramfs = new Initramfs();
  initramfs.file('/etc/passwd', USERS);
  initramfs.file('/etc/group', GROUPS);
  initramfs.file('/etc/machine-id', `${'0123456789abcdef'.repeat(2)}\n`);
  initramfs.file('/etc/os-release', 'ID=guest\nNAME=guest\n');
  initramfs.file('/etc/hostname', 'guest\n');
  for (const folder of ['/var/lib', '/var/log', '/var/tmp', '/srv']) initramfs.folder(folder);
  addUserland(initramfs, process.arch);
  initramfs.copy(join(GUEST, 'init'), '/init');
  for (const program of PROGRAMS) initramfs.copy(realpathSync(program), inUsr(program));
  for (const library of librariesOf(PROGRAMS)) {
    initramfs.copy(realpathSync(library), inUsr(library));
  }
  for (const unit of UNITS) {
    const path = join(SYSTEMD, 'system', unit);
    if (existsSync(path)) initramfs.copy(realpathSync(path), path);
  }
  for (const socket of ['systemd-journald.socket', 'systemd-journald-dev-log.socket']) {
    initramfs.link(
      join('/etc/systemd/system/sockets.target.wants', socket),
      join(SYSTEMD, 'system', socket),
    );
  }
  initramfs.copy(join(REPOSITORY, 'package.json'), '/exitwatch/package.json');
  initramfs.copy(join(REPOSITORY, 'dist'), '/exitwatch/dist');
  const addon = join('build', 'Release', 'exitwatch.node');
  initramfs.file(join('/exitwatch', addon), readFileSync(join(REPOSITORY, addon)));
  for (const folder of foldersOf('bindings', REPOSITORY)) {
    initramfs.copy(folder, join('/exitwatch', relative(REPOSITORY, folder)));
  }
  addBundle(initramfs);
  for (const [path, { content, mode }] of Object.entries(files)) {
    initramfs.file(path, content, mode);
  }
  return initramfs.toBuffer();
}

/** A container of runc, whose processes are those of busybox. */
function addBundle(initramfs) {
  const folder = mkdtempSync(join(tmpdir(), 'ew-bundle-'));
  try {
    execFileSync('runc', ['spec'], { cwd: folder });
    copyFileSync(which('busybox'), join(folder, 'busybox'));
    const config = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
    initramfs.file('/srv/bundle/config.json', JSON.stringify({ ...config }));
    initramfs.file('/srv/bundle/rootfs/bin/busybox', readFileSync(join(folder, 'busybox')), 0o755);
  } finally {
    rmSync(folder, { recursive: true });
  }
  for (const name of ['sh', 'sleep', 'kill']) {
    initramfs.link(join('/srv/bundle/rootfs/bin', name), 'busybox');
  }
  for (const name of ['proc', 'dev', 'sys', 'etc', 'tmp']) {
    initramfs.folder(join('/srv/bundle/rootfs', name));
  }
}
