// Lane: patient

import { readFileSync, readdirSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';

import { probe, type ProbeReport } from '../../src';
import { describeReport } from '../../src/cli/commands/doctor';

import { callWith } from '../support/command';
import { KERNEL } from '../support/kernel';
import { itAsListener, itAsRoot, itAsRootOfHost } from '../support/privilege';
import { program, REPOSITORY, run } from '../support/programs';

/**
 * Runs `doctor` under a command that changes the circumstances. Returns its report and exit code.
 */
async function examine(...before: string[]) {
  const { code, lines } = await callWith(before, 'doctor', '--json');
  return { code, report: JSON.parse(lines[0] ?? 'null') as ProbeReport };
}

const without = (...capabilities: string[]) => [
  'setpriv',
  `--bounding-set=${capabilities.map((name) => `-${name}`).join(',')}`,
];

const mounted = (command: string) => ['unshare', '-m', 'sh', '-c', `${command} && exec "$@"`, 'sh'];

const AS_NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];

const IS_BPFFS_MOUNTED = readFileSync('/proc/mounts', 'latin1').includes(' /sys/fs/bpf bpf ');

const ORDINARY_USER = [...AS_NOBODY, '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];

/** A user who may listen to the connector, with additional capabilities. */
function listenerWith(...more: string[]): string[] {
  const names = KERNEL.ordinaryListeners ? more : [...more, 'net_admin'];
  const capabilities = ['-all', ...names.map((name) => `+${name}`)].join(',');
  const unlimited = KERNEL.programsAreLocked ? ['prlimit', '--memlock=unlimited'] : [];
  return [
    ...unlimited,
    ...AS_NOBODY,
    `--inh-caps=${capabilities}`,
    `--ambient-caps=${capabilities}`,
  ];
}

itAsRootOfHost(
  'doctor exits with 0 if everything works that this version of the kernel supports',
  async () => {
    const { code, report } = await examine();
    expect(report).toMatchObject({
      event: 'doctor',
      platform: 'linux',
      kernel: release(),
      hostNamespaces: { pid: true, user: true, network: true },
      connector: {
        available: true,
        filter: 'ebpf',
        downgrade: null,
        watchedSet: 'kernel',
        namesPrograms: KERNEL.tellsPrograms,
      },
      pidfd: { available: true, inodes: KERNEL.pidfdInodes, exitStatus: KERNEL.pidfdStatus },
      trace: { available: true, downgrade: null },
      degraded: !KERNEL.pidfdStatus,
    });
    expect(code).toBe(KERNEL.pidfdStatus ? 0 : 1);
  },
);

describe('doctor names the true cause of a fall-back to the cBPF filter', () => {
  const causes: [string, string, string[]][] = [
    ['a user who may listen', 'no-capabilities', listenerWith()],
    ['neither capability', 'no-capabilities', without('sys_admin', 'bpf', 'perfmon')],
    ['CAP_BPF alone', 'no-cap-perfmon', without('sys_admin', 'perfmon')],
    ['CAP_PERFMON alone', 'no-cap-bpf', without('sys_admin', 'bpf')],
    ['seccomp that refuses bpf(2)', 'bpf-blocked', [program('without'), 'bpf', 'errno']],
    ['seccomp that kills for bpf(2)', 'bpf-blocked', [program('without'), 'bpf', 'kill']],
    ['no BTF', 'no-btf', mounted('mount -t tmpfs none /sys/kernel')],
    [
      'damaged BTF',
      'no-btf',
      mounted(
        'mount -t tmpfs none /sys/kernel && mkdir /sys/kernel/btf && ' +
          'head -c 1000000 /dev/urandom > /sys/kernel/btf/vmlinux',
      ),
    ],
    ['the cBPF filter is requested', 'cbpf-requested', ['env', 'EXITWATCH_FILTER=cbpf']],
  ];
  for (const [circumstances, cause, before] of causes) {
    itAsRootOfHost(circumstances, async () => {
      const { code, report } = await examine(...before);
      expect(report).toMatchObject({
        connector: {
          available: true,
          obstacle: null,
          filter: 'cbpf',
          downgrade: { code: cause, remedy: expect.any(String) as string },
          watchedSet: 'user-space',
          namesPrograms: false,
        },
        degraded: true,
      });
      expect(code).toBe(1);
    });
  }

  itAsRootOfHost('CAP_BPF and CAP_PERFMON suffice for the eBPF filter', async () => {
    const { code, report } = await examine(...listenerWith('bpf', 'perfmon'));
    expect(report.connector).toMatchObject({ filter: 'ebpf', downgrade: null });
    expect(code).toBe(KERNEL.pidfdStatus ? 0 : 1);
  });
});

describe('doctor names what keeps exits while no monitor runs', () => {
  const none = (detail: string) => ({
    kind: 'none',
    downgrade: { code: 'no-bpffs', detail: expect.stringContaining(detail) as string },
  });

  itAsRootOfHost('nothing, without a BPF file system', async () => {
    const { report } = await examine(...mounted('mount -t tmpfs none /sys/fs/bpf'));
    expect(report.memory).toMatchObject(none('no BPF file system is mounted at /sys/fs/bpf'));
  });

  itAsRootOfHost('nothing, if the BPF file system ends with its mount namespace', async () => {
    const { report } = await examine(...mounted('mount -t bpf none /sys/fs/bpf'));
    expect(report.memory).toMatchObject(none('mount namespace only'));
  });

  (IS_BPFFS_MOUNTED ? itAsRootOfHost : it.skip)(
    'a recorder (needs a BPF file system at /sys/fs/bpf)',
    async () => {
      const { report } = await examine();
      expect(report.memory).toEqual({ kind: 'recorder', downgrade: null });
    },
  );

  (IS_BPFFS_MOUNTED ? itAsRootOfHost : it.skip)(
    'nothing, without capabilities (needs a BPF file system at /sys/fs/bpf)',
    async () => {
      const { report } = await examine(...without('sys_admin', 'bpf', 'perfmon'));
      expect(report.memory).toMatchObject({ kind: 'none', downgrade: { code: 'no-capabilities' } });
    },
  );
});

describe('on kernels that count BPF programs as locked memory (before Linux 5.11)', () => {
  const limited = (limit: string) => [
    ...['prlimit', `--memlock=${limit}`, 'sh', '-c'],
    ...[`LD_PRELOAD=${program('memlock.so')} MEMLOCK_NEEDED=1000000 exec "$@"`, 'sh'],
  ];

  const capabilities = /^CapEff:\t(\w+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
  const mayRaise = ((BigInt(`0x${capabilities ?? 0}`) >> 24n) & 1n) === 1n;

  // root lacks this capability in CI, but has it in the guests of test/kernels.
  (mayRaise ? itAsRootOfHost : it.skip)('CAP_SYS_RESOURCE lifts the limit (needs it)', async () => {
    const { code, report } = await examine(...limited('65536'));
    expect(report).toMatchObject({
      connector: { filter: 'ebpf', downgrade: null },
      trace: { available: true },
    });
    expect(code).toBe(KERNEL.pidfdStatus ? 0 : 1);
  });

  itAsRoot('without CAP_SYS_RESOURCE, the soft limit is raised up to the hard limit', async () => {
    const { report } = await examine(...limited('65536:2000000'), ...without('sys_resource'));
    expect(report).toMatchObject({ connector: { downgrade: null }, trace: { available: true } });
  });

  itAsRootOfHost('doctor names the limit if the hard limit is too low', async () => {
    const { report } = await examine(...limited('65536'), ...without('sys_resource'));
    const downgrade = {
      code: 'memlock-limit',
      detail: expect.stringContaining('RLIMIT_MEMLOCK is 65536') as string,
      remedy: expect.stringContaining('ulimit -l') as string,
    };
    expect(report).toMatchObject({
      connector: { filter: 'cbpf', downgrade },
      trace: { available: false, downgrade },
    });
  });

  itAsRoot('the limit of the program and its children stays the same', async () => {
    const limits = "fs.readFileSync('/proc/self/limits', 'latin1').match(/locked memory.*/)[0]";
    const script =
      `const { probe } = require('${join(REPOSITORY, 'dist')}'), before = ${limits};` +
      `probe().then(({ trace }) => console.log(trace.available, ${limits} === before))`;
    const before = limited('65536:2000000');
    const [command, ...args] = [...before, process.execPath, '-e', script];
    expect((await run(command, args)).stdout).toBe('true true\n');
  });
});

itAsRootOfHost('an ordinary user may listen since Linux 6.6', async () => {
  const { report } = await examine(...ORDINARY_USER);
  expect(report.connector).toMatchObject(
    KERNEL.ordinaryListeners
      ? { available: true, obstacle: null, filter: 'cbpf' }
      : { available: false, obstacle: { code: 'ERR_EXITWATCH_NOT_PERMITTED' }, filter: null },
  );
});

describe('doctor names the namespace in which the connector receives nothing', () => {
  // Before Linux 6.6 the connector also requires a privilege, and doctor reports its absence first.
  const user = KERNEL.ordinaryListeners
    ? { code: 'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE', network: true }
    : { code: 'ERR_EXITWATCH_NOT_PERMITTED', network: null };
  const foreign: [string, string[], object][] = [
    ['NETWORK', ['unshare', '-n'], { pid: true, user: true, network: false }],
    ['PID', ['unshare', '-pf', '--mount-proc'], { pid: false, user: true, network: true }],
    ['USER', ['unshare', '-Ur'], { pid: true, user: false, network: user.network }],
  ];
  for (const [name, before, hostNamespaces] of foreign) {
    itAsRootOfHost(name, async () => {
      const { code, report } = await examine(...before);
      expect(report).toMatchObject({
        hostNamespaces,
        connector: {
          available: false,
          obstacle: {
            code: name === 'USER' ? user.code : `ERR_EXITWATCH_FOREIGN_${name}_NAMESPACE`,
            remedy: expect.any(String) as string,
          },
        },
        pidfd: { available: true },
      });
      expect(code).toBe(1);
    });
  }
});

itAsListener('doctor prints readable ASCII text', async () => {
  const { lines, stderr } = await callWith(['env', 'EXITWATCH_FILTER=cbpf'], 'doctor');
  expect(stderr).toBe('');
  expect(lines.join('\n')).toContain(`linux ${release()}`);
  expect(lines.join('\n')).toMatch(/connector +works, cBPF filter/);
  expect(lines.join('\n')).toContain('what to do: unset it');
  for (const line of lines) expect(line).toMatch(/^[\x20-\x7e]+$/);
});

test('doctor names the kernel version that adds what pidfds lack', async () => {
  const pidfd = { available: true, obstacle: null, inodes: false, exitStatus: false };
  const lines = (report: ProbeReport) => describeReport(report).split('\n');
  const report = await probe();
  const old = lines({ ...report, pidfd }).filter((line) => line.includes('(requires Linux '));
  expect(old).toEqual([
    expect.stringMatching(/no inodes.*\(requires Linux 6\.9\)$/),
    expect.stringMatching(/no exit status.*\(requires Linux 6\.15\)$/),
  ]);
  const newer = lines({ ...report, pidfd: { ...pidfd, inodes: true } });
  expect(newer.filter((line) => line.includes('(requires Linux '))).toEqual(old.slice(1));
});

test('probe() leaves no child, descriptor or thread behind', async () => {
  const remains = () => ({
    children: readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8'),
    descriptors: readdirSync('/proc/self/fd').length,
    threads: readdirSync('/proc/self/task').length,
  });
  await probe();
  const before = remains();
  for (let i = 0; i < 5; i++) await probe();
  expect(remains()).toEqual(before);
});
