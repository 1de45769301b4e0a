// Lane: unit

import { locate } from '../../src';

import {
  H,
  H2,
  H3,
  inWords,
  MANAGER,
  POD,
  POD_,
  testPaths,
  USER,
  expectSound,
} from '../support/places';

testPaths('machines in machines', [
  [
    `/lxc.payload.ci/system.slice/docker-${H}.scope/kubelet/kubepods/pod${POD}/${H2}/docker/${H3}`,
    [
      'machine lxc ci',
      `docker-${H}.scope in system.slice`,
      `container docker ${H}`,
      `pod kubernetes ${POD}`,
      `container unknown ${H2}`,
      `container docker ${H3}`,
    ],
  ],
  [
    '/lxc/101/ns/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service',
    [
      'machine proxmox lxc 101',
      'systemd-nspawn@web.service in machine.slice',
      'machine nspawn web',
      'nginx.service in system.slice',
    ],
  ],
]);

testPaths('hierarchies that do not tell', [
  ['/', [], 'root'],
  ['//', [], 'root'],
  // Docker's containers in a hybrid hierarchy, seen in that of v2.
  ['/system.slice/containerd.service', ['containerd.service in system.slice'], 'runtime-unit'],
  ['/system.slice/docker.service', ['docker.service in system.slice'], 'runtime-unit'],
  ['/system.slice/crio.service', ['crio.service in system.slice'], 'runtime-unit'],
  ['/system.slice/k3s.service', ['k3s.service in system.slice'], 'runtime-unit'],
  [
    '/system.slice/k0scontroller.service',
    ['k0scontroller.service in system.slice'],
    'runtime-unit',
  ],
  ['/system.slice/k0sworker.service', ['k0sworker.service in system.slice'], 'runtime-unit'],
  [
    '/system.slice/snap.microk8s.daemon-containerd.service',
    ['snap.microk8s.daemon-containerd.service in system.slice'],
    'runtime-unit',
  ],
  [
    '/system.slice/snap.microk8s.daemon-kubelet.service',
    ['snap.microk8s.daemon-kubelet.service in system.slice'],
    'runtime-unit',
  ],
  ['/system.slice/libvirtd.service', ['libvirtd.service in system.slice'], 'runtime-unit'],
  [
    `${USER}/app.slice/docker.service`,
    [MANAGER, 'docker.service in app.slice of user uid 1000'],
    'runtime-unit',
  ],
  ['/system.slice/docker.service/workers', ['docker.service in system.slice'], 'unrecognized'],
  // Outside of the cgroup namespace.
  ['/..', [], 'outside-namespace'],
  ['/../..', [], 'outside-namespace'],
  // A sibling of the namespace's root: a unit, or a cgroup in one.
  ['/../web.service', [], 'outside-namespace'],
  [`/../cri-containerd-${H}.scope`, [`container containerd ${H}`], 'outside-namespace'],
  [
    `/../../kubepods/burstable/pod${POD}/${H}`,
    [`pod kubernetes ${POD}`, `container unknown ${H}`],
    'outside-namespace',
  ],
  [
    '/../../../../machine/qemu-1-web.libvirt-qemu/emulator',
    ['machine libvirt qemu 1 web'],
    'outside-namespace',
  ],
  ['/system.slice/../web.service', ['slice system.slice'], 'unrecognized'],
  ['/./system.slice', [], 'unrecognized'],
]);

describe('what is no path', () => {
  test.each([
    ['', 'not-a-path'],
    ['web.service', 'not-a-path'],
    ['0::/system.slice/web.service', 'not-a-path'],
    [`/${'a'.repeat(4096)}`, 'not-a-path'],
    [null, 'no-path'],
    [undefined, 'no-path'],
  ])('%p', (path, reason) => {
    const nothing = { chain: [], unit: null, container: null, pod: null, machine: null };
    expect(locate(path)).toEqual({ ...nothing, reason });
  });
});

describe('names that mislead', () => {
  test.each([
    ['a terminal escape', '\x1b[2J'],
    ['a tabulator', 'a\tb'],
    ['DEL', 'a\x7fb'],
    ['a C1 control', 'a\x9bb'],
    ['a direction override', 'a\u202eb'],
    ['a zero-width space', 'a\u200bb'],
    ['a line separator', 'a\u2028b'],
    ['half a surrogate pair', 'a\ud800'],
    ['256 characters', 'a'.repeat(256)],
  ])('%s is in no name', (_, name) => {
    const paths = [
      ...[`/lxc.payload.${name}`, `/lxc.monitor.${name}`, `/lxc/${name}`, `/lxc.payload/${name}`],
      ...[`/machine/${name}.libvirt-qemu`, `/machine/qemu-1-${name}.libvirt-qemu`],
      ...[
        `/system.slice/${name}.service`,
        `/${name}.slice`,
        `/machine.slice/machine-${name}.scope`,
      ],
      ...[`/machine.slice/systemd-nspawn@${name}.service/payload`],
    ];
    for (const path of paths) {
      const location = locate(path);
      const isUnit = name.length === 256 && path.startsWith('/machine.slice');
      expect([path, JSON.stringify(location).includes(name) && !isUnit]).toEqual([path, false]);
      expect([path, location.reason]).toEqual([path, 'unrecognized']);
    }
  });

  test('an escaped control character of a unit stays escaped, and makes no machine', () => {
    const path = '/machine.slice/machine-a\\x1b\\x5b2J.scope';
    const { chain, machine } = locate(path);
    expect(chain.map(inWords)).toEqual(['machine-a\\x1b\\x5b2J.scope in machine.slice']);
    expect(machine).toBeNull();
  });
});

test('the fields are the innermost of each kind', () => {
  const path = `/system.slice/docker-${H}.scope/kubelet/kubepods/burstable/pod${POD}/${H2}`;
  const { unit, container, pod, machine, reason } = locate(path);
  const name = `docker-${H}.scope`;
  expect({ unit, container, pod, machine, reason }).toEqual({
    unit: { name, slice: 'system.slice', manager: 'system', uid: null, session: null },
    container: { runtime: null, id: H2, name: null },
    pod: { manager: 'kubernetes', uid: POD },
    machine: null,
    reason: null,
  });
});

describe('random paths', () => {
  /** What paths are made of: characters, and parts that mean something. */
  const PARTS = [
    ...Array.from('abcdefghijklmnopqrstuvwxyz0123456789ABC-_.:@\\ #%\x1bé\ud83d\u202e'),
    ...['.slice', '.scope', '.service', '\\x2d', '\\x', '..', ' (deleted)', '.partition'],
    ...['system.slice', 'user-1000.slice', 'user@1000.service', 'session-2.scope', 'init.scope'],
    ...['docker', `docker-${H}.scope`, H, 'kubelet', 'kubepods', 'burstable', `pod${POD}`],
    ...[`kubepods-pod${POD_}.slice`, `libpod-payload-${H}`, `crio-conmon-${H}.scope`, 'container'],
    ...['machine', 'machine-', 'qemu-1-', '.libvirt-qemu', 'libvirt', 'vcpu0', 'payload'],
    ...['lxc', 'lxc.payload.', 'lxc.monitor', '101', 'ns', 'qemu.slice', 'systemd-nspawn@'],
    ...['libpod_parent', `machine-libpod_pod_${H}.slice`, ':cri-containerd:', 'buildkit'],
  ];

  /** A generator with a seed (mulberry32), so that a failure can be repeated. */
  function generator(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
    };
  }

  test('100,000 give a sound location each', () => {
    const below = generator(25);
    const kinds = new Set<string>();
    for (let i = 0; i < 100_000; i++) {
      let path = below(50) === 0 ? '' : '/';
      for (let parts = below(24); parts > 0; parts--) {
        path += (PARTS[below(PARTS.length)] ?? '') + (below(3) > 0 ? '/' : '');
      }
      const location = locate(path);
      const text = JSON.stringify(location);
      const isSound =
        !/\u202e|\\ud83d|\\u001b/.test(text) &&
        location.chain.length <= path.split('/').length * 2 &&
        (location.chain.length > 0 || location.reason !== null);
      if (!isSound) throw new Error(`unsound: ${JSON.stringify(path)} ${text}`);
      if (i % 100 === 0) expectSound(location);
      for (const { kind } of location.chain) kinds.add(kind);
      kinds.add(location.reason ?? 'whole');
    }
    expect([...kinds].sort()).toEqual(
      [
        ...['container', 'machine', 'monitor', 'not-a-path', 'outside-namespace', 'pod', 'root'],
        ...['runtime-unit', 'slice', 'unit', 'unrecognized', 'whole'],
      ].sort(),
    );
  });

  // Were one of the patterns super-linear, this would not end.
  test.each(PARTS.filter((part) => part !== ' (deleted)'))('4 kB of %p end', (part) => {
    for (const path of [part, `${part}/`, `${part}-`, `x${part}`]) {
      const much = path.repeat(Math.ceil(4096 / path.length));
      expectSound(locate(`/${much}`.slice(0, 4096)));
      expectSound(locate(`/x.slice/${much}`.slice(0, 4096)));
    }
  });

  test('a path after another has the same result', () => {
    const path = `/lxc/101/ns/system.slice/docker-${H}.scope`;
    const first = JSON.stringify(locate(path));
    locate('/../x');
    expect(JSON.stringify(locate(path))).toBe(first);
  });
});
