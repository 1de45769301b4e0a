// Lane: patient

import { randomBytes } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { ExitMonitor, locate } from '../../src';
import { containerName } from '../../src/where/container-names';

import { CGROUP2 } from '../support/cgroup2';
import { call, exitwatch, watching } from '../support/command';
import { itAsRootIf } from '../support/privilege';
import { HAS_CONNECTOR } from '../support/kernel';
import { POD, POD_ } from '../support/places';
import { LineProcess } from '../support/programs';
import { until } from '../support/wait';

const withCgroups = itAsRootIf(HAS_CONNECTOR && CGROUP2 !== undefined, 'needs cgroup v2');

const id = randomBytes(32).toString('hex');
const TOP = `exitwatch${process.pid}.slice`;
const WEB = `/${TOP}/exitwatch-web-${process.pid}.service`;
const DEPLOY = `/${TOP}/exitwatch-deploy-${process.pid}.service`;
const MANAGER = `/${TOP}/init.scope`;
const CONTAINER = `/${TOP}/docker-${id}.scope`;
const nameOf = (path: string) => path.split('/').at(-1) ?? '';

/** Where we may make cgroups. */
const OURS = process.getuid?.() === 0 ? CGROUP2 : undefined;

beforeAll(() => {
  for (const path of [WEB, DEPLOY, MANAGER, CONTAINER]) {
    if (OURS !== undefined) mkdirSync(join(OURS, path), { recursive: true });
  }
});

afterAll(() => {
  if (OURS !== undefined) {
    execFileSync('find', [join(OURS, TOP), '-depth', '-type', 'd', '-exec', 'rmdir', '{}', '+']);
  }
});

/** A process in a cgroup. */
function inside(path: string, command: string): LineProcess {
  const enter = `echo $$ > ${CGROUP2}${path}/cgroup.procs`;
  return new LineProcess('sh', ['-c', `${enter} && echo in && ${command}`]);
}

describe('an exit and its sender', () => {
  withCgroups('have the unit of their cgroups', async () => {
    const web = inside(WEB, 'exec sleep 1000');
    const deploy = inside(DEPLOY, `read line; kill ${web.pid}; :`);
    await Promise.all([web.line(), deploy.line()]);
    await using monitor = new ExitMonitor({ scope: 'all' });
    await monitor.start();
    const watch = monitor.watch(web.pid);
    deploy.child.stdin.end('\n');
    const event = await watch.exited;
    expect(event).toMatchObject({ unit: nameOf(WEB), container: null, pod: null, machine: null });
    expect(event.sender).toMatchObject({
      pid: deploy.pid,
      unit: nameOf(DEPLOY),
      onBehalf: false,
      onBehalfReason: null,
    });
  });

  withCgroups('have the container, which a path below a unit names', async () => {
    const process = inside(CONTAINER, 'exit 3');
    await using monitor = new ExitMonitor({ scope: 'all' });
    await monitor.start();
    const other = inside(CONTAINER, 'read line; exit 4');
    await other.line();
    const watch = monitor.watch(other.pid);
    other.child.stdin.end('\n');
    expect(await watch.exited).toMatchObject({
      exitCode: 4,
      container: { runtime: 'docker', id, name: null },
    });
    await process.ended;
  });

  /** The kernel's name of a process is that of its file. */
  const renamed = (name: string) => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-agent-'));
    copyFileSync('/bin/bash', join(folder, name));
    return join(folder, name);
  };

  withCgroups.each([
    ['containerd-shim', DEPLOY, 'container-runtime'],
    ['libvirtd', DEPLOY, 'machine-manager'],
    ['systemd', MANAGER, 'service-manager'],
    ['systemd', DEPLOY, null], // a systemd is in no such place
    ['runc', DEPLOY, null], // its parent has run it, not a shim
  ])('a sender named %s in %s acts for others: %s', async (name, cgroup, reason) => {
    const web = inside(WEB, 'exec sleep 1000');
    const file = renamed(name);
    const agent = inside(cgroup, `exec ${file} -c 'read line; kill ${web.pid}; :'`);
    try {
      await Promise.all([web.line(), agent.line()]);
      await using monitor = new ExitMonitor({ scope: 'all' });
      await monitor.start();
      const watch = monitor.watch(web.pid);
      agent.child.stdin.end('\n');
      const { sender } = await watch.exited;
      expect(sender).toMatchObject({
        name,
        onBehalf: reason !== null,
        onBehalfReason: reason,
      });
      await agent.ended;
    } finally {
      rmSync(dirname(file), { recursive: true });
    }
  });

  withCgroups.each(['all', 'watched'] as const)(
    'scope %s: a sender that acts for others has those who may have asked it',
    async (scope) => {
      const [shim, docker, virsh] = ['containerd-shim', 'docker', 'virsh'].map(renamed);
      const asking = (file = '', ...args: string[]) =>
        new LineProcess(file, ['-c', 'echo up; read line', ...args]);
      const web = inside(WEB, 'exec sleep 1000');
      const agent = inside(DEPLOY, `exec ${shim} -c 'echo up; read line; kill ${web.pid}; :'`);
      const waiting = asking(docker, 'docker', 'stop', 'web');
      const other = asking(virsh);
      try {
        await Promise.all([web.line(), waiting.line(), other.line()]);
        expect([await agent.line(), await agent.line()]).toEqual(['in', 'up']);
        await using monitor = new ExitMonitor({ scope, commandLines: true });
        await monitor.start();
        const watch = monitor.watch(web.pid);
        const quick = asking(docker, 'docker', 'kill', 'web');
        await quick.line();
        const { exited } = monitor.watch(quick.pid);
        quick.child.stdin.end('\n');
        await exited;
        agent.child.stdin.end('\n');
        const { sender } = await watch.exited;
        const mine = [waiting.pid, quick.pid, other.pid];
        const told = sender?.likelyClients?.filter(({ pid }) => mine.includes(pid));
        const client = (pid: number, verb: string, endedAt: unknown) => ({
          pid,
          name: 'docker',
          uid: 0,
          endedAt,
          commandLine: argsOf(docker, verb),
        });
        const argsOf = (file = '', verb: string) => [
          file,
          '-c',
          'echo up; read line',
          'docker',
          verb,
          'web',
        ];
        const ended = scope === 'all' ? [client(quick.pid, 'kill', expect.any(Date))] : [];
        expect(told).toMatchObject([client(waiting.pid, 'stop', null), ...ended]);
      } finally {
        for (const { child } of [web, agent, waiting, other]) child.kill('SIGKILL');
        for (const file of [shim, docker, virsh]) rmSync(dirname(file ?? ''), { recursive: true });
      }
    },
  );

  withCgroups(
    'those who may have asked are known even if they end before the process',
    async () => {
      const [shim, docker] = ['containerd-shim', 'docker'].map(renamed);
      const web = inside(WEB, 'trap : TERM; until read line; do :; done; exit 5');
      const agent = inside(DEPLOY, `exec ${shim} -c 'echo up; read line; kill ${web.pid}; :'`);
      const client = new LineProcess(docker ?? '', ['-c', 'echo up; read line', 'docker', 'stop']);
      try {
        await Promise.all([web.line(), client.line()]);
        expect([await agent.line(), await agent.line()]).toEqual(['in', 'up']);
        await using monitor = new ExitMonitor({ scope: 'watched', commandLines: true });
        await monitor.start();
        const watch = monitor.watch(web.pid);
        const { wakeups } = monitor.stats();
        agent.child.stdin.end('\n');
        await agent.ended;
        await until('the signal to be read', () => monitor.stats().wakeups > wakeups);
        await setTimeout(500); // JavaScript gets it then
        client.child.stdin.end('\n');
        await client.ended;
        web.child.stdin.end('\n');
        const { exitCode, signalsReceived } = await watch.exited;
        expect([exitCode, signalsReceived.map(({ name }) => name)]).toEqual([
          5,
          ['containerd-shim'],
        ]);
        const [{ likelyClients } = {}] = signalsReceived;
        expect(likelyClients?.filter(({ pid }) => pid === client.pid)).toMatchObject([
          { name: 'docker', commandLine: expect.arrayContaining(['stop']) as string[] },
        ]);
      } finally {
        for (const file of [shim, docker]) rmSync(dirname(file ?? ''), { recursive: true });
      }
    },
  );
});

describe('exitwatch watch', () => {
  withCgroups.each([
    ['--unit', nameOf(WEB)],
    ['--unit', nameOf(WEB).replace('.service', '')],
    ['--unit', 'exitwatch-w?b-*.service'],
  ])('%s %s selects a unit', async (option, value) => {
    const watch = exitwatch('watch', '--json', '--count', '1', option, value);
    await watch.line();
    await inside(DEPLOY, 'exit 3').ended;
    const web = inside(WEB, 'exit 4');
    await web.ended;
    const [line = ''] = await watch.rest();
    expect(JSON.parse(line)).toMatchObject({ pid: web.pid, exitCode: 4, unit: nameOf(WEB) });
  });

  withCgroups.each([id, id.slice(0, 12), id.slice(0, 4)])(
    '--container selects by an id or its first digits: %s',
    async (value) => {
      const watch = exitwatch('watch', '--json', '--count', '1', '--container', value);
      await watch.line();
      await inside(WEB, 'exit 3').ended;
      const contained = inside(CONTAINER, 'exit 4');
      await contained.ended;
      const [line = ''] = await watch.rest();
      expect(JSON.parse(line)).toMatchObject({ pid: contained.pid, container: { id } });
    },
  );

  withCgroups('wait names the unit of the process and of its sender', async () => {
    const web = inside(WEB, 'exec sleep 1000');
    const deploy = inside(DEPLOY, `read line; kill ${web.pid}; :`);
    await Promise.all([web.line(), deploy.line()]);
    const wait = exitwatch('wait', String(web.pid));
    await watching(wait);
    deploy.child.stdin.end('\n');
    expect(await wait.ended).toBe(128 + 15);
    const told = wait.stderr.split('\n');
    expect(told).toContain(`in       unit ${nameOf(WEB)}`);
    expect(told.filter((line) => line.includes(`uid 0, unit ${nameOf(DEPLOY)}`))).toHaveLength(1);
  });

  test.each([
    ['a pattern that is too long', '--unit', 'x'.repeat(2000)],
    ['an empty value', '--container', ''],
    ['no range', '--unit', '[z-a]'],
  ])('%s is wrong usage', async (what, option, value) => {
    const message = {
      'a pattern that is too long': 'a name pattern can have at most 1024 characters',
      'an empty value': '--container requires a value that is not empty',
      'no range': '"[z-a]" is not a valid name pattern',
    }[what];
    const { code, stderr } = await call('watch', option, value);
    expect([code, stderr.split('\n')[0]]).toEqual([2, `exitwatch: ${message}`]);
  });
});

/** As Docker 20.10, Podman 4.3, containerd 1.6 and CRI-O 1.30 write them, shortened. */
const FILES: readonly [runtime: string, file: string, content: unknown, cgroup: string][] = [
  ...[
    ['containerd', 'run/containerd', `/system.slice/cri-containerd-${id}.scope`],
    [
      'K3s',
      'run/k3s/containerd',
      `/kubepods.slice/kubepods-pod${POD_}.slice/cri-containerd-${id}.scope`,
    ],
    [
      'k0s',
      'run/k0s/containerd',
      `/system.slice/k0sworker.service/kubepods-pod${POD_}.slice:cri-containerd:${id}`,
    ],
    // It has kubelet's cgroupfs driver.
    ['MicroK8s', 'var/snap/microk8s/common/run/containerd', `/kubepods/besteffort/pod${POD}/${id}`],
  ].map(([runtime = '', state = '', cgroup = '']): (typeof FILES)[number] => [
    runtime,
    `${state}/io.containerd.runtime.v2.task/k8s.io/${id}/config.json`,
    { annotations: { 'io.kubernetes.cri.container-name': 'web' } },
    cgroup,
  ]),
  [
    'docker',
    `var/lib/docker/containers/${id}/config.v2.json`,
    { ID: id, Name: '/web' },
    `/docker/${id}`,
  ],
  ...[
    ['podman', 'var/lib/containers/storage/overlay-containers/containers.json'],
    ['podman run --rm', 'var/lib/containers/storage/overlay-containers/volatile-containers.json'],
    ['podman --transient-store', 'run/containers/storage/vfs-containers/volatile-containers.json'],
  ].map(([runtime = '', file = '']): (typeof FILES)[number] => [
    runtime,
    file,
    [
      { id: 'f'.repeat(64), names: ['other'] },
      { id, names: ['web'] },
    ],
    `/libpod_parent/libpod-${id}`,
  ]),
  [
    'cri-o',
    `var/lib/containers/storage/overlay-containers/${id}/userdata/config.json`,
    { annotations: { 'io.kubernetes.container.name': 'web' } },
    `/system.slice/crio-${id}.scope`,
  ],
];

describe('the name of a container', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'exitwatch-names-'));
  });
  afterEach(() => {
    rmSync(root, { recursive: true });
  });

  const nameAt = (cgroup: string) => {
    const { container } = locate(cgroup);
    if (container === null) throw new Error(`no container at ${cgroup}`);
    return containerName(container, root);
  };
  const write = (file: string, content: string) => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content);
  };

  test.each(FILES)('%s has it in %s', (_, file, content, cgroup) => {
    expect(nameAt(cgroup)).toBeNull();
    write(file, JSON.stringify(content));
    expect(nameAt(cgroup)).toBe('web');
  });

  test.each([
    ['no JSON', '{"Name":'],
    ['another kind of JSON', '[1]'],
    ['no name', '{}'],
    ['a name that changes a terminal', JSON.stringify({ Name: '/\u001b[31mweb' })],
    ['a name that is no text', JSON.stringify({ Name: { toString: 1 } })],
    ['too much', `{"Name":"/web","x":"${'x'.repeat(5 * 1024 * 1024)}"}`],
  ])('is null if the file has %s', (_, content) => {
    write(`var/lib/docker/containers/${id}/config.v2.json`, content);
    expect(nameAt(`/docker/${id}`)).toBeNull();
  });

  test('does not wait for a fifo', () => {
    const path = join(root, `var/lib/docker/containers/${id}/config.v2.json`);
    mkdirSync(dirname(path), { recursive: true });
    execFileSync('mkfifo', [path]);
    expect(nameAt(`/docker/${id}`)).toBeNull();
  });
});
