// Lane: patient

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ExitEvent, SignalSender } from '../../src';
import { JournalWriter, type JournalEvent } from '../../src/journal';
import { whereaboutsOf } from '../../src/where/whereabouts';

import { call } from '../support/command';
import { endOf, Folder, killedBy, rowsOf, write } from '../support/journal';
import { blockWith, sessionOf } from '../support/pages';

const DOCKER = `/system.slice/docker-${'3f2a9c1b04de'.padEnd(64, '0')}.scope`;

async function withJournal(
  events: readonly JournalEvent[],
  test: (ask: (...args: string[]) => Promise<string[]>) => Promise<void>,
): Promise<void> {
  using folder = new Folder();
  {
    await using journal = new JournalWriter({ dir: folder.journal });
    for (const event of events) journal.append(event);
  }
  await test(async (...args) => {
    const { code, lines, stderr } = await call('why', ...args, '--state-dir', folder.path);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return lines;
  });
}

/** An end by systemd, which acts for others. */
function byInit(i: number): Partial<ExitEvent> {
  const by = killedBy('systemd', 1, i);
  const onBehalf = { onBehalf: true, onBehalfReason: 'service-manager' };
  return { ...by, sender: { ...by.sender, ...onBehalf } as ExitEvent['sender'] };
}

/** The end of a deploy.sh that was started at 90. */
function endOfDeploy(i: number): ExitEvent {
  return endOf(i, {
    ...{ name: 'deploy.sh', program: 'bash', pid: 4711, uid: 1000, cgroup: '/user.slice' },
    startedAt: endOf(90).exitedAt,
  });
}

/** An end of a server that systemd runs. */
const server = (i: number, more: Partial<ExitEvent> = {}) =>
  endOf(i, { name: 'node', program: 'node', ...more });

test('the story has the sender’s own end, who else it ended, and the ends before', async () => {
  const events = [
    server(0, { how: 'exited', exitCode: 1 }),
    server(30, { how: 'exited', exitCode: 2 }),
    server(100, killedBy('deploy.sh', 4711, 100)),
    endOf(101, {
      name: 'worker',
      program: 'worker',
      cgroup: '/x',
      ...killedBy('deploy.sh', 4711, 101),
    }),
    endOf(102, {
      name: 'deploy.sh',
      program: 'bash',
      pid: 4711,
      uid: 1000,
      cgroup: '/user.slice',
      startedAt: endOf(90).exitedAt,
    }),
    endOf(103, { name: 'logger', program: 'logger' }),
    endOf(400, { name: 'late', program: 'late', ...killedBy('deploy.sh', 4711, 400) }),
  ];
  await withJournal(events, async (ask) => {
    const lines = await ask('node');
    expect(lines.filter((line) => !/^(lived|ended|memory|gaps|process) /.test(line))).toEqual([
      '1100 (node) killed by SIGTERM from deploy.sh (pid 4711, uid 1000); it lived for 0.50s',
      'in       unit web.service',
      'by       SIGTERM from 4711 deploy.sh, 0.00s before the end (sure: reported by the kernel)',
      '         uid 1000, cgroup /user.slice < 4710 bash',
      'also     1 other ended by signals of the same sender within 10 s (sure)',
      '         1101 (worker) killed SIGTERM, after 0.50s; 1.00s after',
      'near     1 other ended in the same unit within 10 s (sure)',
      '         1103 (logger) exited 0, after 0.50s; 3.00s after',
      'before   it had ended 2 times since the journal began, 2026-11-24T03:00:00.000Z',
      '         2026-11-24T03:00:30.000Z  1030 (node) exited 2, after 0.50s',
      '         2026-11-24T03:00:00.000Z  1000 (node) exited 1, after 0.50s',
      'sender   4711 (deploy.sh) exited 0, after 12.00s, from 2026-11-24T03:01:30.000Z until 2026-11-24T03:01:42.000Z',
      '         uid 1000, cgroup /user.slice',
    ]);
    expect(await ask('1100')).toEqual(lines);
    const all = await ask('node', '--all');
    expect(all.filter((line) => line.includes('(node)') && !line.startsWith(' '))).toEqual([
      '1000 (node) exited 1; it lived for 0.50s',
      '1030 (node) exited 2; it lived for 0.50s',
      '1100 (node) killed by SIGTERM from deploy.sh (pid 4711, uid 1000); it lived for 0.50s',
    ]);
  });
});

test('of a unit, it is the end of what was started first among those that ended together', async () => {
  const events = [
    endOf(50, { name: 'sh', startedAt: endOf(49).exitedAt }),
    server(100, { startedAt: endOf(1).exitedAt, ...byInit(100) }),
    endOf(101, { name: 'rm', program: 'rm' }),
    endOf(102, {
      name: 'systemctl',
      program: 'systemctl',
      uid: 0,
      cgroup: '/user.slice',
      startedAt: endOf(99).exitedAt,
    }),
  ];
  await withJournal(events, async (ask) => {
    for (const word of ['web.service', 'web']) {
      const lines = await ask(word);
      expect(lines[0]).toBe(
        '1100 (node) killed by SIGTERM from systemd (pid 1, uid 1000); it lived for 99.00s',
      );
      expect(lines).toEqual(
        expect.arrayContaining([
          'for      1102 systemctl, uid 0, child of 1 ran at that time (likely)',
        ]),
      );
    }
  });
});

test('of a container, by its name, its id or the beginning of it', async () => {
  const { container } = whereaboutsOf(DOCKER);
  const named = { ...container, name: 'shop-db' } as ExitEvent['container'];
  await withJournal([server(5, { cgroup: DOCKER, container: named })], async (ask) => {
    for (const word of ['3f2a9c1b04de', 'shop-db']) {
      expect((await ask(word))[0]).toBe('1005 (node) exited 0; it lived for 0.50s');
    }
    expect(await ask('3f2a9c1b04de')).toContain('in       container shop-db');
  });
});

/** What is said of who else the sender ended. */
const also = (lines: readonly string[]) => lines.filter((line) => line.startsWith('also'));

const SURE = 'also     1 other ended by signals of the same sender within 10 s (sure)';
const LIKELY =
  'also     1 other ended by signals of the same sender within 10 s (likely: the same pid)';

test.each<[string, string[], readonly ExitEvent[]]>([
  ['for sure if it lived through both', [SURE], [endOfDeploy(102)]],
  ['likely if it had ended by then', [LIKELY], [endOfDeploy(100)]],
  ['likely if it may still live', [LIKELY], []],
])('a sender with the same pid is the same one %s', async (_, expected, more) => {
  const events = [
    server(100, killedBy('deploy.sh', 4711, 100)),
    endOf(101, { name: 'worker', cgroup: '/x', ...killedBy('deploy.sh', 4711, 101) }),
    ...more,
  ];
  await withJournal(events, async (ask) => {
    expect(also(await ask('node'))).toEqual(expected);
  });
});

test('a sender with the same pid and other parents is only likely the same, one of another user is not', async () => {
  const { sender } = killedBy('deploy.sh', 4711, 101);
  const by = (more: object) =>
    ({ ...killedBy('deploy.sh', 4711, 101), sender: { ...sender, ...more } }) as Partial<ExitEvent>;
  const events = [
    server(100, killedBy('deploy.sh', 4711, 100)),
    endOf(101, { cgroup: '/x', ...by({ ancestors: [{ pid: 9, name: 'cron' }] }) }),
    endOf(103, { cgroup: '/x', ...by({ uid: 7 }) }),
    endOfDeploy(104),
  ];
  await withJournal(events, async (ask) => {
    expect(also(await ask('node'))).toEqual([LIKELY]);
  });
});

test('init is the same one for sure, but not after a reboot', async () => {
  const boots = ['8a68af16253b', '8a68af16253b', '0123456789ab'];
  const events = boots.map((boot, i) =>
    endOf(100 + i, {
      ...{ name: i === 0 ? 'node' : 'other', cgroup: `/${i}`, id: `${boot}-${100 + i}-1` },
      ...byInit(100 + i),
    }),
  );
  await withJournal(events, async (ask) => {
    expect(also(await ask('node'))).toEqual([SURE]);
  });
});

test('units of the same name are different ones for each user', async () => {
  const cgroup = (uid: number) =>
    `/user.slice/user-${uid}.slice/user@${uid}.service/app.slice/dbus.service`;
  const events = [
    endOf(1, { name: 'node', cgroup: cgroup(1) }),
    endOf(2, { name: 'node', cgroup: cgroup(2) }),
  ];
  await withJournal(events, async (ask) => {
    expect((await ask('node')).filter((line) => /^(near|before)/.test(line))).toEqual([]);
  });
});

test('a shell of a container acts for itself, a shim for others', async () => {
  const { sender } = killedBy('sh', 99, 100);
  const ancestors = [{ pid: 98, name: 'containerd-shim' }];
  const docker = endOf(101, { name: 'docker', program: 'docker', startedAt: endOf(99).exitedAt });
  const asked = async (more: object) => {
    const by = { ...killedBy('sh', 99, 100), sender: { ...sender, ancestors, ...more } };
    let lines: string[] = [];
    await withJournal([server(100, by as Partial<ExitEvent>), docker], async (ask) => {
      lines = await ask('node');
    });
    return lines.filter((line) => /^for|acts for others/.test(line));
  };
  expect(await asked({})).toEqual([]);
  expect(
    await asked({ onBehalf: true, onBehalfReason: 'container-runtime', name: 'containerd-shim' }),
  ).toEqual([
    expect.stringMatching(/^ +containerd-shim acts for others: docker, /),
    expect.stringMatching(/^for +1101 docker, .*\(likely\)$/),
  ]);
});

test('a script may have asked a supervisor, if it is one that asks it to end something', async () => {
  const run = (i: number, commandLine: string[], name = 'python3') =>
    endOf(i, { name, program: name, startedAt: endOf(99).exitedAt, commandLine });
  const by = killedBy('supervisord', 99, 100);
  const sender = { ...by.sender, onBehalf: true, onBehalfReason: 'supervisor' };
  const events = [
    server(100, { ...by, sender } as Partial<ExitEvent>),
    run(101, ['python3', '/usr/bin/supervisorctl', 'stop', 'node']),
    run(102, ['python3', '/usr/bin/supervisorctl', 'status']),
    run(103, ['python3', './supervisor.py', 'stop']),
    run(104, ['node', '/usr/bin/pm2', 'stop', 'node'], 'MainThread'),
    run(105, ['bash', '/usr/bin/docker', 'stop', 'node'], 'bash'),
  ];
  await withJournal(events, async (ask) => {
    const lines = await ask('node');
    const at = lines.findIndex((line) => line.startsWith('for'));
    expect(lines.slice(at, at + 3)).toEqual([
      expect.stringMatching(
        /^for +1101 python3 \/usr\/bin\/supervisorctl stop node, .*\(likely\)$/,
      ),
      expect.stringMatching(/^ +1104 node \/usr\/bin\/pm2 stop node, .*\(likely\)$/),
      expect.not.stringContaining('likely'),
    ]);
  });
});

test('the command lines of the sender and of who may have asked it are shown', async () => {
  const events = [
    server(100, killedBy('deploy.sh', 4711, 100)),
    { ...endOfDeploy(102), commandLine: ['bash', './deploy.sh', 'a b\u001b'] } as ExitEvent,
  ];
  await withJournal(events, async (ask) => {
    const lines = await ask('node');
    const at = lines.findIndex((line) => line.startsWith('sender'));
    expect(lines[at + 1]).toBe(String.raw`         command bash ./deploy.sh 'a b\u001b'`);
  });
});

test('a signal that ended it is told once', async () => {
  const by = killedBy('deploy.sh', 4711, 100);
  const events = [server(100, { ...by, signalsReceived: [by.sender] } as Partial<ExitEvent>)];
  await withJournal(events, async (ask) => {
    const [, ...told] = (await ask('node')).filter((line) => line.includes('SIGTERM from'));
    expect(told).toEqual([expect.stringMatching(/^by +SIGTERM from 4711 deploy\.sh, /)]);
  });
});

test('of those that may have asked, what ran then comes first, and what only looked is left out', async () => {
  const systemctl = (i: number, verb: string, startedAt: number) =>
    endOf(i, {
      ...{ name: 'systemctl', program: 'systemctl', cgroup: '/user.slice' },
      ...{ startedAt: endOf(startedAt).exitedAt, commandLine: ['systemctl', verb, 'node'] },
    });
  const { sender } = byInit(100);
  const told = { pid: 1101, name: 'systemctl', uid: 0, commandLine: null, endedAt: null };
  const likelyClients = [
    { ...told, startedAt: endOf(99).exitedAt },
    { ...told, pid: 77, name: 'busctl', startedAt: endOf(99).exitedAt },
  ];
  const events = [
    systemctl(97, 'stop', 96),
    systemctl(98, 'status', 97),
    server(100, { ...byInit(100), sender: { ...sender, likelyClients } } as Partial<ExitEvent>),
    systemctl(101, 'restart', 99),
  ];
  await withJournal(events, async (ask) => {
    const lines = await ask('node');
    const at = lines.findIndex((line) => line.startsWith('for'));
    expect(lines.slice(at, at + 4)).toEqual([
      expect.stringMatching(/^for +77 busctl, uid 0 ran at that time \(likely\)$/),
      expect.stringMatching(/^ +1101 systemctl restart node, uid .* ran at that time \(likely\)$/),
      expect.stringMatching(
        /^ +1097 systemctl stop node, uid .* had ended 3\.00s before \(likely\)$/,
      ),
      expect.not.stringContaining('likely'),
    ]);
  });
});

test('a later process with the sender’s pid is not taken for it', async () => {
  const events = [
    server(100, killedBy('deploy.sh', 4711, 100)),
    endOf(200, { name: 'other', program: 'other', pid: 4711 }),
  ];
  await withJournal(events, async (ask) => {
    expect((await ask('node')).filter((line) => line.startsWith('sender'))).toEqual([]);
  });
});

test('what the journal lacks of that time is told', async () => {
  const gap: JournalEvent = {
    ...{ event: 'gap', from: endOf(95).exitedAt, to: endOf(99).exitedAt, lost: null },
    ...{ reason: 'not-recording', recovered: 0 },
  };
  await withJournal([gap, server(100)], async (ask) => {
    expect((await ask('node')).at(-1)).toBe(
      'lost     ends between 2026-11-24T03:01:35.000Z and 2026-11-24T03:01:39.000Z may be missing',
    );
  });
});

test('who ended long before it did is not within seconds, though its signal was', async () => {
  const killed = killedBy('deploy.sh', 4711, 100).sender;
  const asked = { sender: null, signalsReceived: [killed] } as Partial<ExitEvent>;
  const events = [
    server(95),
    server(105, { ...asked, pid: 7, id: '8a68af16253b-7-105', name: 'worker', program: 'worker' }),
    server(158, { name: 'helper', program: 'helper' }),
    server(160, asked),
  ];
  await withJournal(events, async (ask) => {
    const lines = await ask('node');
    expect(lines.filter((line) => /^(also|near)/.test(line))).toEqual([
      'also     1 other ended by signals of the same sender within 10 s (likely: the same pid)',
      'near     1 other ended in the same unit within 10 s (sure)',
    ]);
    expect(lines.filter((line) => /; .* before$/.test(line))).toEqual([
      expect.stringMatching(/^ +7 \(worker\) exited 0.*; 55\.00s before$/),
      expect.stringMatching(/^ +1158 \(helper\) exited 0.*; 2\.00s before$/),
    ]);
  });
});

test('an end is not told as the last one, nor a number as exact, if the journal knows of others', async () => {
  const times = (from: number, to: number) => ({
    from: endOf(from).exitedAt,
    to: endOf(to).exitedAt,
  });
  const gap = { event: 'gap', lost: null, reason: 'not-recording', recovered: 0 } as const;
  const events: JournalEvent[] = [
    { event: 'skipped', name: 'MainThread', program: 'node', count: 20, ...times(0, 30) },
    { event: 'skipped', name: 'other', program: 'other', count: 1000, ...times(0, 30) },
    ...[server(40, { exitCode: 1 }), server(100)],
    { event: 'skipped', name: 'MainThread', program: 'node', count: 5, ...times(100, 110) },
    { ...gap, ...times(500, 600) },
  ];
  await withJournal(events, async (ask) => {
    const lines = await ask('1100');
    expect(lines.slice(lines.findIndex((line) => line.startsWith('before')))).toEqual([
      'before   it had ended at least once since the journal began, 2026-11-24T03:00:30.000Z',
      expect.stringMatching(/ 1040 \(node\) exited 1/),
      '         ends may be missing: 25 were counted and not kept',
      'later    ends may be missing: an unknown number was lost, 5 were counted and not kept; "exitwatch history" says when',
    ]);
  });
});

test('names from other processes are escaped', async () => {
  const evil = endOf(1, { name: 'a\u001b[2J', program: 'b\u202e', cgroup: '/c\u0007' });
  await withJournal([evil], async (ask) => {
    expect((await ask(String(evil.pid))).join('')).not.toMatch(/[^ -~]/);
  });
});

/** That they were read, and have nothing, or that there are none here. */
const OTHER_LOGS = expect.stringMatching(
  /^(Neither systemd’s log nor the kernel’s has anything about it\.|What systemd and the kernel have logged could not all be read: \S.*)$/,
) as string;

test('without a journal, it says how to get one', async () => {
  using folder = new Folder();
  const stateDir = join(folder.path, 'nowhere');
  const { code, stderr } = await call('why', 'exitwatch-zzyzx', '--state-dir', stateDir);
  expect({ code, said: stderr.split('\n') }).toEqual({
    code: 125,
    said: [
      `exitwatch: there is no journal in "${stateDir}/journal"; run "exitwatch record --install" as root, or give --state-dir`,
      OTHER_LOGS,
      '',
    ],
  });
});

test('of what is not in the journal, it says so', async () => {
  using folder = new Folder();
  await new JournalWriter({ dir: folder.journal }).close();
  const { code, stderr } = await call('why', 'zzyzx', '--state-dir', folder.path);
  expect({ code, said: stderr.split('\n') }).toEqual({
    code: 127,
    said: ['exitwatch: the journal has no end of "zzyzx"', OTHER_LOGS, ''],
  });
});

test('of what may be among what the journal lacks, it says so', async () => {
  using folder = new Folder();
  const between = { from: new Date('2026-11-24T03:00Z'), to: new Date('2026-11-24T03:01Z') };
  const gap = { event: 'gap', ...between, recovered: 0 } as const;
  {
    await using journal = new JournalWriter({ dir: folder.journal });
    journal.append({ ...gap, lost: 3, reason: 'receive-buffer' });
    journal.append({ ...gap, lost: 2, reason: 'receive-buffer', recovered: 2 });
    journal.append({ ...gap, lost: 4, reason: 'trace-buffer' });
    journal.append({ event: 'skipped', ...between, name: 'zzyzx', program: null, count: 5 });
    journal.append({ event: 'skipped', ...between, name: 'other', program: null, count: 6 });
    journal.append({ event: 'skipped', ...between, name: null, program: null, count: 7 });
  }
  const { code, stderr } = await call('why', 'zzyzx', '--state-dir', folder.path);
  expect({ code, line: stderr.split('\n')[1] }).toEqual({
    code: 127,
    line: 'It lacks ends: up to 3 were lost, 12 were counted and not kept; "exitwatch history" says when.',
  });
});

test('it prints what docs/journal.md shows', async () => {
  const at = (time: string) => new Date(`2026-11-24T${time}Z`);
  const deploy = killedBy('deploy.sh', 4711, 0).sender;
  const killed = (ms: number) => ({
    ...killedBy('deploy.sh', 4711, 0),
    sender:
      deploy == null ? null : { ...deploy, sentAt: new Date(at('03:00:03.210').getTime() + ms) },
  });
  const events = [
    server(0, {
      ...{ pid: 3900, id: '8a68af16253b-3900-46000000', startedAt: at('00:00:00.000') },
      ...{ exitedAt: at('01:00:00.000'), exitedNs: 2e13 - 7.203211e12, how: 'exited', exitCode: 1 },
    }),
    server(0, {
      ...{ pid: 4101, id: '8a68af16253b-4101-46497757', startedAt: at('03:00:00.000') },
      ...{ exitedAt: at('03:00:03.211'), exitedNs: 2e13, ...killed(0) },
    }),
    endOf(0, {
      ...{ name: 'worker', program: 'worker', pid: 4102, id: '8a68af16253b-4102-46497758' },
      ...{ startedAt: at('03:00:00.010'), exitedAt: at('03:00:03.221'), exitedNs: 2e13 + 1e7 },
      ...killed(5),
    }),
    endOf(0, {
      ...{ name: 'deploy.sh', program: 'bash', pid: 4711, id: '8a68af16253b-4711-46499999' },
      ...{ uid: 1000, cgroup: '/user.slice', startedAt: at('02:59:53.000') },
      ...{ exitedAt: at('03:00:05.000'), exitedNs: 2e13 + 1.789e9 },
    }),
  ];
  events.unshift(endOf(-90_000, { name: 'cron', program: 'cron', cgroup: '/', pid: 99 }));
  const [session] = sessionOf(blockWith('docs/journal.md', '$ exitwatch why web.service'));
  await withJournal(events, async (ask) => {
    expect(await ask('web.service')).toEqual(session?.printed);
  });
});

test('an end of a program with a longer name is not taken for that of another', async () => {
  const ends = [
    endOf(1, { name: 'systemd-network', program: 'systemd-networkd', exitCode: 7 }),
    endOf(2, { name: 'systemd-network', program: 'systemd-networkd-wait-online' }),
    endOf(3, { name: 'a-script-of-mine', program: 'python3', exitCode: 5 }),
  ];
  await withJournal(ends, async (ask) => {
    const [first, second] = await ask('systemd-networkd');
    expect(first).toContain('exited 7');
    expect(second).toMatch(/^process {2}1001 systemd-networkd, /);
    // Of those with this name, the one that failed.
    const [, passed, process] = await ask('systemd-network');
    expect(passed).toBe('later    1 later end exited 0: --all');
    expect(process).toMatch(/^process {2}1001 systemd-networkd, /);
  });
});

describe('of a name, the end is told that somebody asks about', () => {
  const job = (i: number, more: object = {}) => endOf(i, { name: 'job', program: 'job', ...more });
  const request = (i: number) => {
    const { sender } = killedBy('deploy.sh', 4711, i);
    return { signalsReceived: sender == null ? [] : [sender] };
  };
  const own = (i: number) => endOf(i, { name: 'exitwatch-cli', program: 'node' });
  const earlierOwn = (i: number) =>
    endOf(i, {
      ...{ name: 'node', program: 'node', exitCode: 127 },
      commandLine: ['/usr/bin/node', '/usr/bin/exitwatch', 'why', 'hupjob'],
    });
  const helper = (i: number) =>
    endOf(i, {
      name: 'ps',
      program: 'ps',
      parentName: 'exitwatch-cli',
      exitCode: 1,
    });

  test.each<[string, ExitEvent[], string, string, string | undefined]>([
    ['killed', [job(1, killedBy('x', 9, 1)), job(2), job(3)], 'job', '1001 ', '2 later ends'],
    ['failed', [job(1, { exitCode: 1 }), job(2)], 'job', '1001 ', '1 later end'],
    ['asked to end', [job(1, request(1)), job(2)], 'job', '1001 ', '1 later end'],
    [
      'seen by nobody',
      [job(1, { how: 'unknown', exitCode: null, unknownReason: 'lost' }), job(2)],
      'job',
      '1001 ',
      '1 later end',
    ],
    [
      'the last of these',
      [job(1, { exitCode: 1 }), job(2, { exitCode: 2 })],
      'job',
      '1002 ',
      undefined,
    ],
    ['good, if all were', [job(1), job(2)], 'job', '1002 ', undefined],
    [
      'of a pid the last one',
      [job(1, { exitCode: 1, pid: 7 }), job(2, { pid: 7 })],
      '7',
      '7 (job) exited 0',
      undefined,
    ],
    [
      'not exitwatch itself',
      [job(1, { program: 'node' }), own(2)],
      'node',
      '1001 (job)',
      '1 later end had the name of a command of exitwatch',
    ],
    [
      'not an earlier exitwatch',
      [job(1, { program: 'node' }), earlierOwn(2)],
      'node',
      '1001 (job)',
      '1 later end had the name of a command of exitwatch',
    ],
    [
      'what was run with a file of exitwatch',
      [endOf(1, { name: 'vim', program: 'vim', commandLine: ['vim', '/usr/bin/exitwatch'] })],
      'vim',
      '1001 (vim)',
      undefined,
    ],
    [
      'not a helper',
      [endOf(1, { name: 'ps', program: 'ps' }), helper(2)],
      'ps',
      '1001 (ps)',
      '1 later end had the name of a command of exitwatch',
    ],
    ['exitwatch, if that was asked', [own(1)], 'exitwatch-cli', '1001 (exitwatch-cli)', undefined],
    ['exitwatch, if there is no other', [own(1)], 'node', '1001 (exitwatch-cli)', undefined],
  ])('%s', async (_, events, word, head, later) => {
    await withJournal(events, async (ask) => {
      const [first = '', second = ''] = await ask(word);
      expect(first.startsWith(head)).toBe(true);
      expect(second.startsWith('later ') ? second : undefined).toEqual(
        later && `later    ${later.includes('had') ? later : `${later} exited 0`}: --all`,
      );
    });
  });
});

describe('of a name that no end has', () => {
  const titled = (i: number, ...commandLine: string[]) =>
    endOf(i, {
      name: 'sleep',
      program: 'sleep',
      commandLine,
      exitCode: i === 2 ? 1 : 0,
    });

  test.each([
    ['pdeath', ['pdeath', '100']],
    ['worker-gunicorn', ['/opt/worker-gunicorn', '100']],
    ['gunicorn', ['gunicorn: worker [app]']],
    ['pd*', ['pdeath', '100']],
  ])('what called itself so is told, and that it did: %s', async (word, commandLine) => {
    using folder = new Folder();
    await write(folder.journal, [
      titled(1, ...commandLine),
      titled(2, ...commandLine),
      titled(3, ...commandLine),
      titled(4, 'other'),
    ]);
    const { code, lines, stderr } = await call('why', word, '--state-dir', folder.path);
    expect(code).toBe(0);
    expect(stderr).toContain(`The journal has no end of "${word}"; this process called itself so.`);
    expect(lines[0]).toBe('1002 (sleep) exited 1; it lived for 0.50s');
    expect(lines.find((line) => line.startsWith('command '))).toMatch(/, as it calls itself$/);
  });

  test('the nearest ones are offered', async () => {
    using folder = new Folder();
    const names = ['payments-worker', 'payment', 'nginx', 'postgres', 'x'];
    const ends = names.map((name, i) => endOf(i, { name, program: name }));
    const cgroup = '/user.slice/user-1000.slice/user@1000.service/app.slice/dbus.service';
    await write(folder.journal, [...ends, endOf(9, { cgroup })]);
    const ask = async (word: string) =>
      (await call('why', word, '--state-dir', folder.path)).stderr.replaceAll(/\s+/g, ' ');
    expect(await ask('payments')).toContain('The nearest names in it: payment, payments-worker.');
    expect(await ask('ngnix')).toContain('The nearest names in it: nginx.');
    expect(await ask('dbus.service')).toContain('The nearest names in it: 1000:dbus.service.');
    expect(await ask('something')).not.toContain('nearest');
  });
});

test('so many good ends that earlier ones were not looked at are not said to be all', async () => {
  using folder = new Folder();
  {
    await using journal = new JournalWriter({ dir: folder.journal });
    for (let i = 0; i <= 20_000; i++) {
      const exitCode = i === 0 ? 1 : 0;
      journal.append(endOf(i, { name: 'job', program: 'job', exitCode }));
      if (i % 1000 === 0) await journal.flush();
    }
  }
  const { lines } = await call('why', 'job', '--state-dir', folder.path);
  expect(lines.slice(0, 2)).toEqual([
    '21000 (job) exited 0; it lived for 0.50s',
    'later    earlier ends, of which one may have failed, were not looked at: --all',
  ]);
});

test('who raises a signal is not said to have done so on its own before anybody looked', async () => {
  const { sender } = killedBy('node', 1001, 1);
  const itself = { how: 'killed', exitCode: null, signal: 'SIGTERM', sender } as Partial<ExitEvent>;
  const since = endOf(0).exitedAt;
  for (const [startedAt, isTold] of [
    [since, false],
    [new Date(since.getTime() - 60_000), true],
  ] as const) {
    const end = endOf(1, { ...itself, startedAt, requestsSince: since });
    await withJournal([end], async (ask) => {
      const lines = await ask('1001');
      const what = `         what it was sent before ${since.toISOString()} is not known`;
      expect(lines.includes(what)).toBe(isTold);
    });
  }
});

describe('what ended as its child did is told with the story of that', () => {
  const parent = (more: object) =>
    endOf(10, {
      pid: 500,
      id: '8a68af16253b-500-1',
      name: 'sh',
      program: 'dash',
      ...more,
    });
  const child = (more: object, i = 10) =>
    endOf(i, {
      ...{ pid: 501, id: '8a68af16253b-501-1', name: 'server', program: 'server', parentPid: 500 },
      ...more,
    });
  const killed = killedBy('deploy.sh', 4711, 10);
  const again = { ...killed, sender: { ...killed.sender, pid: 500 } };

  test.each<[string, ExitEvent, ExitEvent, boolean]>([
    ['a shell with 128+n', child(killed), parent({ exitCode: 143 }), true],
    ['not with another n', child(killed), parent({ exitCode: 137 }), false],
    [
      'any program with 128+n',
      child(killed),
      parent({ exitCode: 143, program: 'x', name: 'x' }),
      true,
    ],
    [
      'a shell that ends as its last command',
      child({ exitCode: 3 }),
      parent({ exitCode: 3 }),
      true,
    ],
    [
      'not a server that exits with the same code',
      child({ exitCode: 3 }),
      parent({ exitCode: 3, program: 'x', name: 'x' }),
      false,
    ],
    [
      'sudo, which kills itself',
      child(killed),
      parent({ ...again, name: 'sudo', program: 'sudo' }),
      true,
    ],
    [
      'not what another has killed',
      child(killed),
      parent({ ...killed, name: 'sudo', program: 'sudo' }),
      false,
    ],
    [
      'timeout',
      child(killed),
      parent({ exitCode: 124, name: 'timeout', program: 'timeout' }),
      true,
    ],
    [
      'npm',
      child({ exitCode: 1 }),
      parent({ exitCode: 1, name: 'npm test', program: 'node' }),
      true,
    ],
    [
      'not a child from long before',
      child(killed, 5),
      parent({ exitCode: 143, startedAt: endOf(1).exitedAt }),
      false,
    ],
    [
      'not somebody else’s child',
      child({ ...killed, parentPid: 7 }),
      parent({ exitCode: 143 }),
      false,
    ],
    ['not with 0', child(killed), parent({ exitCode: 0 }), false],
  ])('%s', async (_, inner, outer, isTold) => {
    await withJournal([inner, outer], async (ask) => {
      const lines = await ask('500');
      const heads = lines.filter((line) => /^50[01] \(/.test(line));
      expect(heads).toHaveLength(isTold ? 2 : 1);
      expect(heads[0]?.startsWith('500 (')).toBe(true);
      expect(heads[0]?.includes(', as its child 501 (server) ')).toBe(isTold);
      expect(lines.filter((line) => line.startsWith('process '))).toHaveLength(isTold ? 2 : 1);
    });
  });

  test('through several of them', async () => {
    const outermost = endOf(10, {
      pid: 499,
      id: '8a68af16253b-499-1',
      name: 'sudo',
      program: 'sudo',
      exitCode: 143,
    });
    await withJournal(
      [child(killed), parent({ exitCode: 143, parentPid: 499 }), outermost],
      async (ask) => {
        const lines = await ask('499');
        expect(lines.filter((line) => /^(499|500|501) \(/.test(line))).toEqual([
          '499 (sudo) exited 143, after 0.50s, as its child 500 (sh) exited 143 (likely why)',
          '500 (sh) exited 143, after 0.50s, as its child 501 (server) was killed by SIGTERM (likely why)',
          '501 (server) killed by SIGTERM from deploy.sh (pid 4711, uid 1000); it lived for 0.50s',
        ]);
        expect(
          lines.filter((line) => /^(process|$)/.test(line)).map((line) => line.slice(0, 14)),
        ).toEqual([...['', '', 'process  501 s', '', 'process  500 s', '', 'process  499 s']]);
      },
    );
  });
});

describe('a unit and a container are asked for with whose they are', () => {
  const MANAGER = '/user.slice/user-1000.slice/user@1000.service';
  const ID = 'ab'.repeat(32);
  const crashed = { how: 'dumped', exitCode: null, signal: 'SIGSEGV', coreDumped: true } as const;
  const of = (i: number, cgroup: string, more: Partial<ExitEvent> = {}) =>
    endOf(i, { name: 'daemon', program: 'daemon', cgroup, ...more });
  const events = [
    of(0, '/system.slice/dbus.service', crashed),
    of(1, `/system.slice/docker-${ID}.scope`, { exitCode: 7 }),
    // Later, and with a name of somebody's choice.
    of(50, `${MANAGER}/app.slice/dbus.service`),
    of(51, `${MANAGER}/dbus.service`),
    of(52, `${MANAGER}/app.slice/docker-${ID}.scope`),
    of(53, `/docker/${'cd'.repeat(32)}/system.slice/dbus.service`),
    of(54, `/docker/${'cd'.repeat(32)}/docker/${ID}`),
  ];

  test.each<[string[], string, string]>([
    [['dbus.service'], '1000 (daemon) killed by SIGSEGV', 'in       unit dbus.service'],
    [['dbus'], '1000 (daemon) killed by SIGSEGV', 'in       unit dbus.service'],
    [['1000:dbus.service'], '1051 (daemon) exited 0', 'in       unit 1000:dbus.service'],
    [['1000:dbus'], '1051 (daemon) exited 0', 'in       unit 1000:dbus.service'],
    [[ID], '1001 (daemon) exited 7', `in       container ${ID.slice(0, 12)}`],
    [[ID.slice(0, 12)], '1001 (daemon) exited 7', `in       container ${ID.slice(0, 12)}`],
    [[`1000:${ID}`], '1052 (daemon) exited 0', `in       container 1000:${ID.slice(0, 12)}`],
    [
      ['cd'.repeat(32)],
      '1054 (daemon) exited 0',
      'in       container abababababab, container cdcdcdcdcdcd',
    ],
  ])('why %j', async (words, head, place) => {
    await withJournal(events, async (ask) => {
      const lines = await ask(...words);
      expect(lines[0]?.startsWith(head)).toBe(true);
      expect(lines.find((line) => line.startsWith('in '))).toBe(place);
    });
  });

  test('those of others are not among what went before', async () => {
    await withJournal([...events, of(60, '/system.slice/dbus.service')], async (ask) => {
      const lines = await ask('dbus.service');
      const before = lines.findIndex((line) => line.startsWith('before '));
      expect(lines.slice(before)).toEqual([
        expect.stringMatching(/^before +it had ended once since/),
        expect.stringContaining('1000 (daemon) dumped SIGSEGV'),
      ]);
    });
  });

  test('history and readJournal() know them apart, too', async () => {
    using folder = new Folder();
    await write(folder.journal, events);
    const pidsOf = async (...args: string[]) => {
      const { lines } = await call('history', '--state-dir', folder.path, '--json', ...args);
      return lines.flatMap((line) => (JSON.parse(line) as { pid?: number }).pid ?? []);
    };
    const dir = folder.journal;
    const ask = async (query: object) =>
      (await rowsOf({ dir, ...query })).map((row) => (row.event === 'exit' ? row.pid : 0));
    for (const [option, value, pids] of [
      ['unit', 'dbus.service', [1000]],
      ['unit', '1000:dbus.service', [1050, 1051]],
      ['container', ID, [1001]],
      ['container', `1000:${ID}`, [1052]],
    ] as const) {
      expect(await pidsOf(`--${option}`, value)).toEqual(pids);
      expect(await ask({ [option]: value })).toEqual(pids);
    }
    expect(await pidsOf('--unit', 'db*')).toEqual([1000]);
    expect(await pidsOf('--unit', '1000:db*')).toEqual([1050, 1051]);
    const own = await pidsOf('--user-unit', 'dbus');
    expect(own).toEqual(process.getuid?.() === 1000 ? [1050, 1051] : []);
  });
});

describe('a sender’s own end is that of the process that sent the signal', () => {
  /** Milliseconds after the first end. */
  const at = (ms: number) => new Date(endOf(100).exitedAt.getTime() + ms);
  const victim = (startedAt: Date | null) =>
    endOf(100, killedBy('deploy.sh', 4711, 100, startedAt));
  /** An end of a process with the sender's pid, `ns`: by the kernel's clock. */
  const withItsPid = (name: string, startedAt: Date, exitedAt: Date) =>
    endOf(100, {
      ...{
        name,
        program: 'bash',
        pid: 4711,
        startedAt,
        exitedAt,
        id: `8a68af16253b-4711-${startedAt.getTime()}`,
      },
      exitedNs: (endOf(100).exitedNs ?? 0) + (exitedAt.getTime() - at(0).getTime()) * 1e6,
    });
  const own = withItsPid('deploy.sh', at(-50), at(1));
  const next = withItsPid('next.sh', at(4), at(9));

  test.each<[string, ExitEvent[], string[]]>([
    ['its own', [victim(at(-50)), own], ['sender   4711 (deploy.sh)']],
    [
      'its own, and not the next one’s',
      [victim(at(-50)), own, next],
      ['sender   4711 (deploy.sh)'],
    ],
    ['none, if only the next one’s is known', [victim(at(-50)), next], []],
    [
      'none, if the next one began in the same moment',
      [victim(at(-50)), own, withItsPid('next.sh', at(-49), at(9))],
      [],
    ],
    [
      'its own, in rows of earlier versions',
      [victim(null), own, next],
      ['sender   4711 (deploy.sh)'],
    ],
    ['none, in rows of earlier versions, of one that began later', [victim(null), next], []],
  ])('%s', async (_, events, expected) => {
    await withJournal(events, async (ask) => {
      const senders = (await ask('1100')).filter((line) => line.startsWith('sender '));
      expect(senders.map((line) => line.split(' exited', 1)[0])).toEqual(expected);
    });
  });
});

test('who exits after a request is not said to have had no signal', async () => {
  const { sender } = killedBy('deploy.sh', 4711, 1);
  const request = endOf(1, { signalsReceived: sender == null ? [] : [sender] });
  await withJournal([request], async (ask) => {
    const lines = await ask('1001');
    expect(lines.filter((line) => /^(by|before) /.test(line))).toEqual([
      'by       itself (sure: no signal killed it), after what follows',
      'before   SIGTERM from 4711 deploy.sh, 0.00s before the end (sure: reported by the kernel)',
    ]);
  });
});

describe('who exits without a known signal is said to have had none only as far as anybody looked', () => {
  const LEFT_OUT =
    'that could have ended it. Left out is what it ignored, and those faults, timers and real-time signals that it caught and no other process sent';
  const at = (i: number) => endOf(i).exitedAt;

  test.each<[string, object, string]>([
    ['from its start', {}, `the signal trace has none since it began ${LEFT_OUT}`],
    [
      'from its start, but for longer than other signals are kept',
      { startedAt: at(-200), tracedSince: at(-200), requestsSince: at(-200) },
      'the signal trace has no SIGTERM, SIGINT, SIGHUP or SIGQUIT since it began, ' +
        `and none since 2026-11-24T02:58:01.000Z ${LEFT_OUT}`,
    ],
    [
      'from its start, in an earlier version',
      { startedAt: at(-200), tracedSince: at(-200), requestsSince: undefined },
      `the signal trace has none since 2026-11-24T02:58:01.000Z ${LEFT_OUT}`,
    ],
    [
      'later',
      { startedAt: at(-200), tracedSince: at(0), requestsSince: at(0) },
      `the signal trace has none since 2026-11-24T03:00:00.000Z ${LEFT_OUT}`,
    ],
    [
      'by a recorder',
      { source: 'recorder' },
      `the signal trace has none since it began ${LEFT_OUT.replace('ignored, ', 'ignored, what it sent itself, ')}`,
    ],
    [
      'never',
      { traced: false, tracedSince: null },
      'whether a signal asked it to exit is not known',
    ],
  ])('who looked %s', async (_, more, expected) => {
    await withJournal([endOf(1, more)], async (ask) => {
      const [by, ...others] = (await ask('1001')).filter((line) => /^(by|before) /.test(line));
      expect(by).toBe(`by       itself (sure: no signal killed it); ${expected}`);
      expect(others).toEqual([]);
    });
  });
});

test.each<[string, Partial<ExitEvent>, string[]]>([
  [
    'a recorder',
    { source: 'recorder' },
    ['lacks    what it used, and its arguments: a recorder told its end, and keeps neither'],
  ],
  ['a monitor', {}, []],
  ['both', { source: 'recorder', commandLine: ['sh', '-c', 'true'] }, []],
])(
  'why says what is missing, and why, of an end that was seen by %s',
  async (_, more, expected) => {
    await withJournal([endOf(1, more)], async (ask) => {
      expect((await ask('1001')).filter((line) => line.startsWith('lacks'))).toEqual(expected);
    });
  },
);

test('what was lost of signals, or recovered, is no missing end', async () => {
  const gap = { event: 'gap', from: endOf(1).exitedAt, to: endOf(2).exitedAt } as const;
  const events: JournalEvent[] = [
    { ...gap, lost: 120, reason: 'trace-buffer', recovered: 0 },
    { ...gap, lost: 2, reason: 'receive-buffer', recovered: 2 },
    { ...gap, lost: 3, reason: 'receive-buffer', recovered: 1 },
    endOf(3),
  ];
  const between = 'between 2026-11-24T03:00:01.000Z and 2026-11-24T03:00:02.000Z';
  await withJournal(events, async (ask) => {
    const lines = await ask('1003');
    expect(lines.filter((line) => /^(lost|later) /.test(line))).toEqual([
      `lost     not all signals ${between} were seen`,
      `lost     up to 2 ends ${between} may be missing`,
    ]);
  });
});

test('workers are not taken for earlier runs of their server', async () => {
  const master = (from: number, to: number, more = {}) =>
    server(to, { startedAt: endOf(from).exitedAt, ...more });
  const ends = [
    server(1, { startedAt: endOf(-90_000).exitedAt }),
    ...[9.1, 9.2, 9.3].map((to, i) => server(to, { pid: 500 + i, startedAt: endOf(2).exitedAt })),
    master(1.5, 9.4, { pid: 77 }),
    ...[19.1, 19.2].map((to, i) => server(to, { pid: 600 + i, startedAt: endOf(12).exitedAt })),
    master(11, 20),
  ];
  await withJournal(ends, async (ask) => {
    const lines = await ask('web.service');
    const before = lines.findIndex((line) => line.startsWith('before'));
    expect(lines.slice(before)).toEqual([
      expect.stringMatching(/^before {3}it had ended 2 times since the journal began, /),
      expect.stringMatching(/ 77 \(node\) exited 0, after 7\.90s$/),
      expect.stringMatching(/ 1001 \(node\) exited 0, /),
    ]);
  });
});

test('the last end is the one that happened last, and not the one that was told last', async () => {
  await withJournal([server(10, { exitCode: 9 }), server(8), server(7)], async (ask) => {
    expect((await ask('node'))[0]).toBe('1010 (node) exited 9; it lived for 0.50s');
  });
});

test('a journal of some ends says so', async () => {
  using folder = new Folder();
  await write(folder.journal, [server(0), server(10)], { keeps: ['failed'] });
  const { lines } = await call('why', 'node', '--state-dir', folder.path);
  expect(lines.at(-1)).toBe(
    'keeps    this journal keeps only ends that match failed: there may be others',
  );
});

test('a journal in which nothing is written any more says so', async () => {
  using folder = new Folder();
  await write(folder.journal, [server(0)]);
  const note = {
    at: new Date('2026-11-24T05:00:00Z'),
    bootId: 'another',
    uptime: 1,
    counts: false,
  };
  writeFileSync(join(folder.journal, 'recording'), JSON.stringify(note), { mode: 0o600 });
  const say = 'exitwatch: Nothing has been recorded since 2026-11-24T05:00:00.000Z.';
  const said = async (...args: string[]) =>
    (await call(...args, '--state-dir', folder.path)).stderr.split('\n');
  expect(await said('history')).toContain(say);
  expect(await said('why', 'node')).toContain(say.slice('exitwatch: '.length));
  expect(await said('why', 'zzyzx')).toEqual(
    expect.arrayContaining([
      'The journal begins at 2026-11-24T03:00:00.000Z.',
      say.slice('exitwatch: '.length),
    ]),
  );
});

test('what only a client of a sender claims is not printed', async () => {
  const by = byInit(1).sender;
  const client = {
    ...{ pid: 9, name: 'systemctl', uid: 0, commandLine: null, startedAt: endOf(0).exitedAt },
    ...{ endedAt: null, program: 5, parentPid: '1\u001b[2J' },
  };
  const end = endOf(1, { sender: { ...by, likelyClients: [client] } as unknown as SignalSender });
  await withJournal(
    [{ ...end, ...{ how: 'killed', exitCode: null, signal: 'SIGTERM' } } as ExitEvent],
    async (ask) => {
      const lines = await ask('1001');
      expect(lines).toContainEqual('for      9 systemctl, uid 0 ran at that time (likely)');
    },
  );
});

test('a name that looks like a pattern is found before what it matches as one', async () => {
  const named = (i: number, name: string) => endOf(i, { name, program: 'node' });
  const events = [named(1, 'worker[3]'), named(2, 'worker3'), named(3, 'worker[4]')];
  await withJournal(events, async (ask) => {
    const first = async (word: string) => (await ask(word))[0];
    expect(await first('worker[3]')).toMatch(/^1001 \(worker\[3\]\) exited 0/);
    expect(await first('worker[4]')).toMatch(/^1003 /);
    expect(await first('worker[3-9]')).toMatch(/^1002 /);
    expect((await ask('worker[3]', '--all')).filter((line) => /^\d/.test(line))).toHaveLength(1);
  });
});
