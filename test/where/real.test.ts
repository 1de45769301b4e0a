// Lane: patient

import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { execFileSync, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { locate } from '../../src';

import { inWords } from '../support/places';
import { itAsRootIf } from '../support/privilege';
import { LineProcess, run } from '../support/programs';
import { itUnderSystemd, underSystemd } from '../support/systemd';

/** Nobody else's containers are below it. */
const ABOVE = `/exitwatch-where-${process.pid}`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-where-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
  // runc removes its own cgroup, but not those above it that it has made.
  const made = ['', ...readdirSync('/sys/fs/cgroup')]
    .map((hierarchy) => join('/sys/fs/cgroup', hierarchy, ABOVE))
    .filter((path) => existsSync(path));
  if (made.length > 0)
    execFileSync('find', [...made, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', '+']);
});

/** The paths in /proc/PID/cgroup, with v1 one for each hierarchy. */
const pathsIn = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^\d+:[^:]*:/, ''));

const isStatic = spawnSync('ldd', ['/bin/busybox']).status !== 0;
const hasRunc = existsSync('/usr/sbin/runc') && existsSync('/bin/busybox') && isStatic;
const withRunc = itAsRootIf(hasRunc, 'needs runc and a static busybox');

/** Runs a container of runc with this cgroup, and returns the paths that its process is at. */
async function containerAt(cgroupsPath: string): Promise<string[]> {
  const name = `exitwatch-${process.pid}-where`;
  mkdirSync(join(folder, 'rootfs', 'bin'), { recursive: true });
  copyFileSync('/bin/busybox', join(folder, 'rootfs', 'bin', 'sh'));
  await run('runc', ['spec'], { cwd: folder });
  const file = join(folder, 'config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as {
    process: { terminal: boolean; args: string[] };
    linux: { cgroupsPath: string };
  };
  config.process.terminal = false;
  config.process.args = ['sh', '-c', 'echo up; read line'];
  config.linux.cgroupsPath = cgroupsPath;
  writeFileSync(file, JSON.stringify(config));
  const container = new LineProcess('runc', ['run', '--bundle', folder, name]);
  try {
    expect(await container.line()).toBe('up');
    const { pid } = JSON.parse((await run('runc', ['state', name])).stdout) as { pid: number };
    return pathsIn(readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
  } finally {
    container.child.stdin.end();
    await container.ended;
  }
}

describe('a container of runc', () => {
  const id = randomBytes(32).toString('hex');
  const uid = '7b180868-7134-44c6-8b7a-4c6c9bf19f0d';

  withRunc.each([
    [`/docker/${id}`, [`container docker ${id}`]],
    [`/kubepods/burstable/pod${uid}/${id}`, [`pod kubernetes ${uid}`, `container unknown ${id}`]],
    [`/libpod_parent/libpod-${id}`, [`container podman ${id}`]],
  ])('at %s is located in each hierarchy that knows it', async (path, places) => {
    const cgroupsPath = ABOVE + path;
    const paths = await containerAt(cgroupsPath);
    // Some hierarchies of v1 may be left out, and that of v2 beside them.
    const known = paths.filter((path) => path.endsWith(cgroupsPath));
    expect(known.length).toBeGreaterThan(0);
    // A container in a container has longer paths.
    for (const each of known) {
      const { chain, reason } = locate(each);
      const told = chain.map(inWords);
      expect([each, told.slice(told.length - places.length)]).toEqual([each, places]);
      expect([each, reason]).toEqual([each, 'unrecognized']); // what is above is ours alone
    }
    const others = paths.filter((path) => !path.endsWith(cgroupsPath));
    expect(others.map((path) => locate(path).container)).toEqual(others.map(() => null));
  });
});

/** `systemd-escape` is the reference. */
const NAMES = ['a b', 'a-b', 'a/b', '.a', 'ä', 'a\\x2d', 'a@b', 'x'.repeat(60)];

itUnderSystemd(
  'services, scopes and slices of a real systemd are located by their own names for it',
  async () => {
    const units: Record<string, string> = {
      'plain.service': 'ExecStart=/bin/cat /proc/self/cgroup',
      'tasks.service': 'ExecStart=/bin/cat /proc/self/cgroup',
      '_low.service': 'ExecStart=/bin/cat /proc/self/cgroup',
      'inst@.service': 'ExecStart=/bin/cat /proc/self/cgroup',
      'sliced.service': 'Slice=shop-web.slice\nExecStart=/bin/cat /proc/self/cgroup',
    };
    for (const [name, text] of Object.entries(units)) {
      const output = `StandardOutput=append:/run/test/cgroups`;
      const service = `[Service]\nType=oneshot\n${output}\n${text}\n`;
      writeFileSync(join(folder, name), `[Unit]\nDefaultDependencies=no\n${service}`);
    }
    const instances = ['inst@a\\x2db.service', 'inst@tty1.service'];
    const started = [
      ...['plain.service', 'tasks.service', '_low.service', 'sliced.service'],
      ...instances,
    ];
    const said = await underSystemd(folder, Object.keys(units), [
      ...started.map((name) => `systemctl start '${name}' || echo failed '${name}'`),
      ...NAMES.map((name) => `systemd-escape -- '${name}'`),
    ]);
    expect(said).toHaveLength(NAMES.length);
    const told = pathsIn(readFileSync(join(folder, 'cgroups'), 'utf8'))
      .map((path) => locate(path).unit)
      .filter((unit) => unit !== null);
    expect(new Set(told.map(({ name, slice }) => `${name} in ${slice}`))).toEqual(
      new Set([
        ...['plain.service in system.slice', 'tasks.service in system.slice'],
        ...['_low.service in system.slice', 'sliced.service in shop-web.slice'],
        ...instances.map((name) => `${name} in system-inst.slice`),
      ]),
    );
    // A machine's name in the scope that systemd-machined makes for it.
    const machines = said.map((name) => locate(`/machine.slice/machine-${name}.scope`).machine);
    expect(machines.map((machine) => machine?.name ?? null)).toEqual(
      NAMES.map((name) => (/^[\w-]+$/.test(name) ? name : null)),
    );
  },
  'systemd-escape',
);

itUnderSystemd(
  'a service of a real user’s manager, and a machine of a real systemd-nspawn, are located',
  async () => {
    const root = join(folder, 'root');
    for (const name of ['bin', 'etc', 'usr']) mkdirSync(join(root, name), { recursive: true });
    copyFileSync('/bin/busybox', join(root, 'bin', 'sh'));
    writeFileSync(join(root, 'etc', 'os-release'), 'ID=test\n');
    const own = '/run/user/1000';
    // Like the units of systemd, but without PAM and a network.
    const units = {
      'app.service': ['ExecStart=/bin/sleep 1000'],
      'user@1000.service': [
        ...['Type=notify', 'User=1000', 'Slice=user-1000.slice', 'Delegate=yes', 'KillMode=mixed'],
        ...[`Environment=XDG_RUNTIME_DIR=${own} HOME=${own}`, 'ExecStartPre=+/run/test/prepare'],
        'ExecStart=/lib/systemd/systemd --user --unit=app.service',
      ],
      'systemd-nspawn@shop.service': [
        ...['Slice=machine.slice', 'Delegate=yes', 'KillMode=mixed'],
        'ExecStart=systemd-nspawn --quiet --keep-unit --register=no --machine=%i ' +
          `--directory=/run/test/root /bin/sh -c 'exec sleep 1000'`,
      ],
    };
    for (const [name, lines] of Object.entries(units)) {
      const text = ['[Unit]', 'DefaultDependencies=no', '[Service]', ...lines, ''].join('\n');
      writeFileSync(join(folder, name), text);
    }
    const prepare = [
      `#!/bin/sh -e`,
      `mkdir -p ${own}/systemd/user`,
      `cp /run/test/app.service ${own}/systemd/user`,
      `chown -R 1000 ${own}`,
    ];
    writeFileSync(join(folder, 'prepare'), `${prepare.join('\n')}\n`, { mode: 0o755 });
    const said = await underSystemd(
      folder,
      ['user@1000.service', 'systemd-nspawn@shop.service'],
      [
        'systemctl start user@1000.service systemd-nspawn@shop.service',
        'until [ "$(cat /proc/[0-9]*/comm | grep -cx sleep)" -ge 2 ]; do /bin/busybox usleep 100000; done',
        `grep -hE '^(0:|[0-9]+:name=systemd):' /proc/[0-9]*/cgroup`,
        'systemctl stop user@1000.service systemd-nspawn@shop.service',
      ],
    );
    const located = pathsIn(said.join('\n')).map((path) => locate(path).chain.map(inWords));
    const user = 'user@1000.service in user-1000.slice uid 1000';
    const nspawn = 'systemd-nspawn@shop.service in machine.slice';
    for (const places of [
      [user, 'init.scope in -.slice of user uid 1000'],
      [user, 'app.service in app.slice of user uid 1000'],
      [nspawn, 'monitor of machine nspawn shop'],
      [nspawn, 'machine nspawn shop'],
    ])
      expect(located).toContainEqual(places);
  },
  'systemd-nspawn',
);
