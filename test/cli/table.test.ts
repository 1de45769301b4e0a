// Lane: patient

import type { ExitEvent, Gap, SignalSender } from '../../src';
import { ExitTable } from '../../src/cli/output/exit-table';
import { NOWHERE } from '../../src/where/whereabouts';

import { callWith, MAIN } from '../support/command';
import { itAsListener, itAsRoot, itAsRootOfHost } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { kill } from '../support/kill';

const NOON = new Date(2026, 10, 22, 12);
const START = new Date(NOON.getTime() - 90_000);

const END: ExitEvent = {
  ...{ event: 'exit', id: 'x', pid: 4_194_303, parentPid: 4_194_302, name: 'server' },
  ...{ program: 'server', uid: 1000 },
  ...{ parentName: null, usage: null, commandLine: null },
  ...NOWHERE,
  ...{ cgroup: '/', startedAt: START, exitedAt: NOON, exitedNs: 1 },
  ...{ uncertaintyMs: 0, source: 'connector', isRepeated: false },
  ...{ lossless: true, traced: true, tracedSince: START, requestsSince: START },
  ...{ sender: null, raisedAfter: null, signalsReceived: [], oom: false },
  ...{ how: 'exited', exitCode: 0, signal: null, coreDumped: false, unknownReason: null },
};

const SENDER: SignalSender = {
  signal: 'SIGTERM',
  sentAt: NOON,
  origin: 'kill',
  pid: 4_194_301,
  startedAt: START,
  name: 'a-long-name-too',
  uid: 0,
  cgroup: null,
  ...NOWHERE,
  ...{ onBehalf: false, onBehalfReason: null, likelyClients: null, commandLine: null },
  ...{ program: null, ancestors: [] },
};

const LONG = {
  ...SENDER,
  program: 'dash',
  commandLine: ['sh', '-c', 'x'.repeat(400)],
} as SignalSender;

const KILLED: ExitEvent = {
  ...END,
  ...{ how: 'killed', exitCode: null, signal: 'SIGTERM', coreDumped: null, unknownReason: null },
  ...{ name: '名前名前名\u001b', lossless: false, sender: SENDER, raisedAfter: SENDER },
};

const GAP: Gap = {
  ...{ event: 'gap', from: NOON, to: NOON, lost: 12, reason: 'silenced', recovered: 3 },
};

/** Each of these characters takes two columns. */
const columnsOf = (line: string) => line.length + (line.match(/[名前]/g)?.length ?? 0);

test('columns line up, also after a name with East Asian characters', () => {
  const table = new ExitTable(false, () => 200, NOON);
  const placeOf = (event: ExitEvent, how: string) => {
    const [row = ''] = table.exit(event).split('\n');
    return columnsOf(row.slice(0, row.indexOf(how)));
  };
  expect(placeOf(KILLED, 'killed')).toBe(placeOf(END, 'exited'));
});

describe.each([200, 103, 100, 90, 80, 60, 50, 40])('on a terminal of %i columns', (columns) => {
  const table = new ExitTable(false, () => columns, NOON);
  const text = [table.header(), table.exit(END), table.exit(KILLED), table.gap(GAP)].join('\n');

  test('no line is longer than the terminal', () => {
    for (const line of text.split('\n')) {
      expect([line, columnsOf(line) <= columns]).toEqual([line, true]);
    }
  });

  test('the sender is printed in full', () => {
    const words = text.replace(/\s+/g, ' ');
    const pieces = ['4194301', 'a-long-name-too', 'SIGTERM'];
    for (const piece of pieces) expect(words).toContain(piece);
  });
});

test.each([80, 93, 105, 160])(
  'on a terminal of %i columns a long number stays in one line',
  (columns) => {
    const table = new ExitTable(false, () => columns, NOON);
    const event = { ...KILLED, name: 'server', uid: 4_294_967_294, startedAt: new Date(0) };
    const lines = table.exit(event).split('\n');
    for (const line of lines) expect([line, line.length <= columns]).toEqual([line, true]);
    const [first = ''] = lines;
    expect(first.match(/\d{2,}(?:\.\d)?d?/g)).toContain('20779.5d');
    expect(first.includes('4294967294')).toBe(table.header().includes('UID'));
    // What it took from BY is on the next line.
    expect(lines.join(' ').replace(/\s+/g, ' ')).toContain('4194301 a-long-name-too');
  },
);

test('without a terminal each row is one line with every column', () => {
  const table = new ExitTable(false, () => undefined, NOON);
  expect(table.exit(KILLED).split('\n')).toHaveLength(1);
  expect(table.exit(END)).toMatch(
    /^12:00:00\.000 +4194303 +4194302 +1000 +server +90\.00s +exited 0 +-$/,
  );
});

test.each([
  [80, 'MainThread', 'node', 'node'],
  [80, 'deploy.sh', 'bash', 'deploy.sh'],
  [80, 'a-worker', 'a-server', 'a-server'],
  [undefined, 'MainThread', 'node', 'MainThread (node)'],
  [undefined, 'deploy.sh', 'bash', 'deploy.sh (bash)'],
])(
  'on a terminal of %s columns the process %s of %s is shown as %s',
  (columns, name, program, shown) => {
    const event = { ...END, name, program };
    const row = new ExitTable(false, () => columns, NOON).exit(event);
    expect(row.split(/ {2,}|(?<=\d) /)).toContain(shown);
    expect(row.split('\n')).toHaveLength(1);
  },
);

test.each([
  ['sh', 'dash', 'sh'],
  ['deploy.sh', 'bash', 'deploy.sh (bash)'],
  ['systemd', 'python3.13', 'systemd (python3.13)'],
  ['kill', 'busybox', 'kill'],
  ['MainThread', 'node', 'MainThread (node)'],
  ['worker', 'nginx', 'worker (nginx)'],
  ['nginx', 'nginx', 'nginx'],
  ['nginx', null, 'nginx'],
])('the sender %s of the program %s is shown as %s', (name, program, shown) => {
  const row = new ExitTable(false, () => undefined, NOON).exit({
    ...{ ...END, how: 'killed', exitCode: null, signal: 'SIGTERM' },
    sender: { ...SENDER, name, program },
  });
  expect(row).toMatch(new RegExp(` \\d+ ${shown.replace(/[()]/g, '\\$&')}$`));
});

describe('who asked it to exit', () => {
  const ago = (seconds: number) => new Date(NOON.getTime() - seconds * 1000);
  const sent = (signal: SignalSender['signal'], seconds: number, more = {}) =>
    ({ ...SENDER, name: 'sh', signal, sentAt: ago(seconds), ...more }) as SignalSender;

  test.each<[string, Partial<ExitEvent>, string]>([
    ['nobody', {}, '-'],
    ['nobody that was seen', { requestsSince: ago(80) }, '?'],
    ['nobody that was seen, because its start is not known', { startedAt: null }, '?'],
    ['just now', { signalsReceived: [sent('SIGTERM', 9)] }, 'after SIGTERM from 4194301 sh'],
    [
      'long ago',
      { signalsReceived: [sent('SIGTERM', 7300)], startedAt: ago(9000), requestsSince: ago(9000) },
      '2.0h after SIGTERM from 4194301 sh',
    ],
    [
      'long ago, before it sent that to itself',
      {
        ...{ how: 'killed', exitCode: null, signal: 'SIGTERM' },
        sender: sent('SIGTERM', 0, { pid: END.pid, origin: 'tgkill' }),
        raisedAfter: sent('SIGTERM', 125),
      },
      'itself, 2.1m after SIGTERM from 4194301 sh',
    ],
    [
      'before others reloaded it',
      { signalsReceived: [sent('SIGQUIT', 60), sent('SIGHUP', 3, { pid: 7 })] },
      '60.00s after SIGQUIT from 4194301 sh',
    ],
    [
      'before others had it tell its state',
      { signalsReceived: [sent('SIGINT', 9), sent('SIGQUIT', 3, { pid: 7 })] },
      'after SIGINT from 4194301 sh',
    ],
    [
      'several times',
      { signalsReceived: [sent('SIGTERM', 9, { pid: 7 }), sent('SIGTERM', 8)] },
      'after SIGTERM from 4194301 sh',
    ],
    ['nobody, but others reloaded it', { signalsReceived: [sent('SIGHUP', 30)] }, '-'],
    ['by a hang-up', { signalsReceived: [sent('SIGHUP', 2)] }, 'after SIGHUP from 4194301 sh'],
    [
      'another one, before it asked itself',
      { signalsReceived: [sent('SIGINT', 8), sent('SIGTERM', 1, { pid: END.pid })] },
      'after SIGINT from 4194301 sh',
    ],
    ['by sending it SIGUSR1', { signalsReceived: [sent('SIGUSR1', 1)] }, '-'],
  ])('%s', (_, more, expected) => {
    const row = new ExitTable(false, () => undefined, NOON).exit({ ...END, ...more } as ExitEvent);
    expect(row.split(/ {2,}/).at(-1)).toBe(expected);
  });
});

describe('what a process calls itself stands behind the program that the kernel knows', () => {
  const by = (program: string | null, name: string, ...commandLine: string[]) =>
    new ExitTable(false, () => undefined, NOON)
      .exit({
        ...{ ...END, how: 'killed', exitCode: null, signal: 'SIGTERM' },
        sender: { ...SENDER, uid: 65534, program, name, commandLine },
      })
      .split(/ {2,}/)
      .at(-1);

  test.each<[string, string | null, string, string[]]>([
    ['4194301 bash /srv/deploy.sh', 'bash', 'deploy.sh', ['bash', '/srv/deploy.sh']],
    ['4194301 sh -c true', 'dash', 'sh', ['sh', '-c', 'true']],
    ['4194301 -bash', 'bash', 'bash', ['-bash']],
    ['4194301 python3 x.py', 'python3.13', 'python3', ['python3', 'x.py']],
    ["4194301 'nginx: worker process'", 'nginx', 'nginx', ['nginx: worker process']],
    ['4194301 kill 7', 'busybox', 'kill', ['kill', '7']],
    [
      '4194301 python3.13 (uid 65534, calls itself /usr/lib/systemd/systemd --system)',
      'python3.13',
      'systemd',
      ['/usr/lib/systemd/systemd', '--system'],
    ],
    [
      "4194301 sleep (uid 65534, calls itself 'kernel (out of memory)' 100)",
      'sleep',
      'sleep',
      ['kernel (out of memory)', '100'],
    ],
    ['4194301 evil (uid 65534, calls itself evi l)', 'evil', 'evil', ['evi', 'l']],
    ['4194301 node (uid 65534, calls itself /usr/bin/no)', 'node', 'node', ['/usr/bin/no']],
    ['4194301 x (uid 65534, calls itself systemd)', null, 'x', ['systemd']],
  ])('%s', (expected, program, name, commandLine) => {
    expect(by(program, name, ...commandLine)).toBe(expected);
  });
});

test.each<[string, Partial<ExitEvent>]>([
  ['that killed it', { how: 'killed', exitCode: null, signal: 'SIGTERM', sender: LONG }],
  ['that asked it to exit', { signalsReceived: [LONG] }],
])('a long command line of the sender %s is cut to one line', (_, more) => {
  const table = new ExitTable(false, () => 90, NOON);
  const row = table.exit({ ...END, ...more } as ExitEvent);
  expect(row.split('\n')).toHaveLength(1);
  expect(row).toMatch(/…$/);
});

test.each([
  [80, 'node server.js', '4194301 deploy.sh web'],
  [100, 'node /srv/server.js', '4194301 bash deploy.sh web'],
  [
    200,
    '/usr/bin/node /srv/server.js',
    'itself, after SIGTERM from 4194301 /bin/bash /srv/deploy.sh web',
  ],
])(
  'on a terminal of %i columns a row has the script of the sender: %s, %s',
  (columns, name, by) => {
    const commandLine = ['/bin/bash', '/srv/deploy.sh', 'web'];
    const sender = { ...SENDER, program: 'bash', commandLine };
    const row = new ExitTable(false, () => columns, NOON, true).exit({
      ...{ ...END, how: 'killed', exitCode: null, signal: 'SIGTERM', lossless: true },
      ...{ program: 'node', commandLine: ['/usr/bin/node', '/srv/server.js'] },
      ...{ sender, raisedAfter: sender },
    });
    expect(row.split('\n')).toHaveLength(1);
    expect(row).toContain(` ${name} `);
    expect(row.endsWith(` ${by}`)).toBe(true);
  },
);

test('on a narrow terminal a row has the sender, however it was called', () => {
  const sender = { ...SENDER, pid: 77, program: 'runc', commandLine: ['runc', 'kill', 'web'] };
  const table = new ExitTable(false, () => 80, NOON, true);
  const killed = { ...END, how: 'killed', exitCode: null, signal: 'SIGTERM', sender };
  expect(table.exit({ ...killed, raisedAfter: sender } as ExitEvent)).toMatch(/ 77 runc kill web$/);
  expect(table.exit({ ...END, signalsReceived: [sender] })).toMatch(/ after 77 runc kill web$/);
});

test('the first row of another day follows a line with the date', () => {
  const table = new ExitTable(false, () => undefined, NOON);
  const midnight = new Date(2026, 10, 23, 0, 0, 1);
  const next = { ...END, exitedAt: midnight };
  const lines = [END, next, next].flatMap((event) => table.exit(event).split('\n'));
  expect(lines).toEqual([
    expect.stringMatching(/^12:00:00/),
    '2026-11-23',
    expect.stringMatching(/^00:00:01/),
    expect.stringMatching(/^00:00:01/),
  ]);
  expect(table.gap({ ...GAP, to: NOON }).split('\n')[0]).toBe('2026-11-22');
});

test('the header is printed again when the terminal becomes narrower', () => {
  let columns = 120;
  const table = new ExitTable(false, () => columns, NOON);
  expect(table.header()).toMatch(/^TIME +PID +PARENT +UID/);
  expect(table.exit(END).split('\n')).toHaveLength(1);
  columns = 80;
  expect(table.exit(END)).toMatch(/^TIME +PID +NAME +LIVED +HOW +BY\n12:00:00 4194303 server/);
});

/** The lines that a terminal of 80 columns shows until the command ends. */
async function inTerminal(command: string): Promise<string[]> {
  const terminal = new LineProcess('script', ['-qec', `stty cols 80; ${command}`, '/dev/null'], {
    env: { ...process.env, NO_COLOR: '1' },
  });
  const lines = await terminal.rest();
  await terminal.ended;
  return lines;
}

const WATCH = `${process.execPath} ${MAIN} watch`;

/** Ends one process after another in the background until the shell ends. */
const COUNTING = `sh -c 'while kill -0 $PPID; do (sleep 0.1; exit 3); done' 2>/dev/null &`;

test('no line wraps on a real terminal of 80 columns', async () => {
  const lines = await inTerminal(`${COUNTING} ${WATCH} --failed --count 3`);
  expect(lines.length).toBeGreaterThanOrEqual(5);
  expect(lines.find((line) => line.startsWith('TIME'))).toMatch(/^TIME +PID +NAME .*BY\s*$/);
  for (const line of lines) expect(line.trimEnd().length).toBeLessThanOrEqual(80);
});

const WITHOUT_BPF = ['setpriv', '--bounding-set=-sys_admin,-bpf,-perfmon'];

describe('a watch that cannot report everything first says so, with the reason and the remedy', () => {
  const firstLine = async (before: string[], ...args: string[]) => {
    const { stderr } = await callWith(before, 'watch', '--for', '100ms', ...args);
    return stderr.split('\n')[0];
  };

  test('when it polls', async () => {
    expect(await firstLine([], '--source', 'poll')).toBe(
      'watching every process on this host (poll, polling every second), degraded: it cannot report how ' +
        'processes end or who ended them (BY is ?), because --source poll was requested; run exitwatch doctor',
    );
  });

  itAsRootOfHost('without the signal trace', async () => {
    const line = await firstLine(WITHOUT_BPF);
    expect(line).toMatch(/\(connector, cBPF filter\), degraded: it cannot report who sent signals/);
    expect(line).toMatch(
      /because the process has neither CAP_BPF nor CAP_PERFMON; run exitwatch doctor$/,
    );
  });

  itAsRootOfHost('in another pid namespace', async () => {
    const line = await firstLine(['unshare', '-pf', '--mount-proc']);
    expect(line).toMatch(/\(poll, .*, degraded: .*host's pid namespace.*; run exitwatch doctor$/);
  });

  itAsListener('with the cBPF filter, also with --json', async () => {
    for (const args of [[], ['--json']]) {
      const line = await firstLine(['env', 'EXITWATCH_FILTER=cbpf'], ...args);
      expect(line).toMatch(/cBPF filter\), degraded: .*EXITWATCH_FILTER=cbpf.*doctor$/);
    }
  });

  itAsRootOfHost('a watch that can report everything does not mention limits', async () => {
    expect(await firstLine([])).toBe(
      'watching every process on this host (connector, eBPF filter)',
    );
  });

  itAsRoot('on a terminal the warning breaks between words', async () => {
    const lines = await inTerminal(`${WITHOUT_BPF.join(' ')} ${WATCH} --for 100ms`);
    for (const line of lines) expect(line.trimEnd().length).toBeLessThanOrEqual(80);
    expect(lines.slice(0, -1).join(' ').replace(/\s+/g, ' ')).toContain('run exitwatch doctor');
  });
});

describe('the reason why a row names no sender is printed once', () => {
  itAsRoot('in the first line, without the signal trace', async () => {
    const command = new LineProcess('sh', [
      ...['-c', `${COUNTING} exec ${WITHOUT_BPF.join(' ')} ${WATCH} --failed --count 3`],
    ]);
    const rows = (await command.rest()).slice(1);
    await command.ended;
    expect(rows).toHaveLength(3);
    for (const row of rows) expect(row).toMatch(/ \?$/);
    expect(command.stderr.match(/BY/g)).toHaveLength(1);
  });

  itAsRoot('before the first such row, with it', async () => {
    const target = new LineProcess('sleep', ['1000']);
    const { pid } = target;
    await target.stop();
    kill(pid, 'SIGTERM'); // the trace has not started yet
    const watch = new LineProcess(process.execPath, [MAIN, 'watch', '--pid', String(pid)]);
    await watch.line();
    kill(pid, 'SIGCONT');
    const [row] = await watch.rest();
    expect(row).toMatch(/killed SIGTERM +\?$/);
    expect(watch.stderr.match(/in the BY column: exitwatch did not see who ended/g)).toHaveLength(
      1,
    );
  });
});

test('a gap that began on another day says on which', () => {
  const table = new ExitTable(false, () => 200, NOON);
  const from = new Date('2026-11-20T21:14:03.000');
  expect(table.gap({ ...GAP, from })).toContain('lost since 2026-11-20 21:14:03.000: ');
  expect(table.gap({ ...GAP, from: new Date(0) })).toContain('lost since an unknown time: ');
  const skipped = { event: 'skipped', name: 'MainThread', program: 'node', count: 7 } as const;
  expect(table.skipped({ ...skipped, from, to: NOON })).toContain(
    'SKIPPED: 7 ends of MainThread (node) since 2026-11-20 21:14:03.000',
  );
});

test('a long name of a program is cut where it does not fit, as the kernel cuts it', () => {
  const event = { ...END, name: 'x86_64-linux-gn', program: 'x86_64-linux-gnu-as' };
  const rowAt = (columns: number | undefined) =>
    new ExitTable(false, () => columns, NOON).exit(event).split('\n');
  expect(rowAt(80)).toEqual([expect.stringContaining(' x86_64-linux-gn ')]);
  expect(rowAt(undefined)).toEqual([expect.stringContaining(' x86_64-linux-gnu-as ')]);
});
