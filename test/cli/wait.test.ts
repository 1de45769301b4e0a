// Lane: patient

import type { ExitEvent } from '../../src';
import { EXIT_UNKNOWN } from '../../src/cli/output/exit-codes';

import { call, exitwatch, watching } from '../support/command';
import {
  type Death,
  DEATH_NAMES,
  type DeathName,
  DyingProcesses,
  ENDS_BESIDE_ITS_FIRST,
  HAVE_CODES_OF_THEIR_OWN,
} from '../support/deaths';
import { MAY_LISTEN } from '../support/kernel';
import { itAsRootOfHost } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { roomForProcesses } from '../support/room';

/** The exit code with which a shell reports a wait status. */
function exitCodeFor(status: number): number {
  return (status & 0x7f) === 0 ? status >> 8 : 128 + (status & 0x7f);
}

/** The threads of a command. */
const THREADS = 14;

test('exitwatch wait exits as the process did, for every way to die', async () => {
  const room = Math.floor(roomForProcesses(DEATH_NAMES.length * THREADS) / THREADS);
  const size = Math.max(1, room);
  for (let first = 0; first < DEATH_NAMES.length; first += size) {
    await exitsAsTheyDid(DEATH_NAMES.slice(first, first + size));
  }
});

async function exitsAsTheyDid(names: readonly DeathName[]): Promise<void> {
  const dying = await DyingProcesses.spawn(names, 'now');
  const waits = dying.pids.map((pid) => exitwatch('wait', String(pid)));
  await Promise.all(waits.map(watching));
  const deaths = await dying.die();
  const codes = await Promise.all(waits.map((wait) => wait.ended));
  const expected = dying.pids.map((pid, i) => {
    const death = deaths.find((each) => each.pid === pid);
    const code = codes[i] ?? NaN;
    const isAllowed = death !== undefined && otherCodes(death).includes(code);
    return [death?.name, isAllowed ? code : exitCodeFor(death?.status ?? NaN)];
  });
  expect(codes.map((code, i) => [expected[i]?.[0], code])).toEqual(expected);
}

/** The codes with which `wait` may exit because the process is reaped at once. */
function otherCodes({ name }: Death): number[] {
  // If nothing but its pidfd tells, that has the first thread's code.
  if (!MAY_LISTEN) return ENDS_BESIDE_ITS_FIRST.has(name) ? [0] : [];
  // Only the eBPF filter sees which thread's code is the status.
  const hasEbpf = process.geteuid?.() === 0;
  return !hasEbpf && HAVE_CODES_OF_THEIR_OWN.has(name) ? [EXIT_UNKNOWN] : [];
}

describe('exitwatch wait', () => {
  test('prints the exit as a sentence or as JSON', async () => {
    const child = new LineProcess('sleep', ['1000']);
    const waits = [
      exitwatch('wait', String(child.pid)),
      exitwatch('wait', '--json', String(child.pid)),
    ];
    await Promise.all(waits.map(watching));
    child.child.kill('SIGTERM');
    expect(await waits[0]?.rest()).toEqual([
      expect.stringMatching(
        new RegExp(`^${child.pid} \\(sleep\\) killed SIGTERM, after [\\d.]+s$`),
      ),
    ]);
    const event = JSON.parse((await waits[1]?.line()) ?? '{}') as ExitEvent;
    expect(event).toMatchObject({
      event: 'exit',
      pid: child.pid,
      how: 'killed',
      signal: 'SIGTERM',
    });
    expect(await Promise.all(waits.map((wait) => wait.ended))).toEqual([143, 143]);
  });

  itAsRootOfHost('prints everything known to stderr, and how certain it is', async () => {
    const fates = new LineProcess(program('fates'), ['caught-then-killed']);
    const [, pid] = ((await fates.line()) ?? '').split(' ');
    const wait = exitwatch('wait', pid ?? '');
    await watching(wait);
    fates.child.stdin.write('go\n');
    expect(await wait.ended).toBe(143);
    const lines = wait.stderr.trimEnd().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(
        /^process +\d+ target( \(fates\))?, uid 0, (child of \d+( .+)?|parent unknown) \(id [-0-9a-f]+\)$/,
      ),
      expect.stringMatching(
        /^lived +\d+\.\d+s, from .*Z until .*Z \(sure: reported by the kernel\)$/,
      ),
      expect.stringMatching(
        /^used +\d+\.\d\ds user, \d+\.\d\ds system, at most [\d.]+ [KMG]iB of memory, [\d.]+ \w+ read, [\d.]+ \w+ written$/,
      ),
      'ended    killed by SIGTERM, no core dump (sure: reported by the kernel)',
      expect.stringMatching(
        /^by +SIGTERM from \d+ sender \(fates\), \d+\.\d+s before the end \(sure: reported by the kernel\)$/,
      ),
      expect.stringMatching(/^ +uid 0, cgroup .* < \d+ fates < \d+ \S+ < /),
      expect.stringMatching(/^before +SIGTERM from \d+ sender \(fates\), \d+\.\d+s before the end/),
      expect.stringMatching(/^ +uid 0, cgroup .* < \d+ fates < /),
      'memory   not killed by the OOM killer (sure)',
      'gaps     no events were lost',
    ]);
  });

  test('accepts the name of one process, even one that the kernel has truncated', async () => {
    const child = new LineProcess(program('named-longer-than-15'), []);
    await child.line();
    const wait = exitwatch('wait', 'named-longer-than-15');
    await watching(wait);
    child.child.kill('SIGKILL');
    expect(await wait.ended).toBe(137);
  });

  test('lists the pids if several processes have the name', async () => {
    const children = [0, 1].map(() => new LineProcess(program('named-longer-than-15'), []));
    for (const child of children) await child.line();
    const { code, stderr } = await call('wait', 'named-longer-*');
    expect(code).toBe(2);
    for (const child of children) expect(stderr).toContain(String(child.pid));
    for (const child of children) child.child.kill();
  });

  test('--timeout ends the wait with 124 and leaves the process alone', async () => {
    const child = new LineProcess('sleep', ['1000']);
    expect(await call('wait', String(child.pid), '--timeout', '100ms')).toEqual({
      ...{ code: 124, lines: [], stderr: '' },
    });
    expect(child.child.exitCode).toBeNull();
    child.child.kill();
  });

  test('a process that does not exist exits with 127', async () => {
    const gone = new LineProcess('true', []);
    await gone.ended;
    expect((await call('wait', String(gone.pid))).code).toBe(127);
    expect((await call('wait', 'no-such-name-anywhere')).code).toBe(127);
    expect((await call('wait', '2')).code).toBe(127); // a kernel thread
  });

  // The longest delay of a timer distinguishes the units.
  test.each([
    ['2147483647ms', '2147483648ms'],
    ['2147483', '2147484'],
    ['2147483s', '2147484s'],
    ['35791m', '35792m'],
    ['596h', '597h'],
    ['24d', '25d'],
  ])('--timeout accepts %s and rejects %s', async (longest, tooLong) => {
    const nobody = 'no-such-name-anywhere';
    expect((await call('wait', nobody, '--timeout', longest)).code).toBe(127);
    expect((await call('wait', nobody, '--timeout', tooLong)).code).toBe(2);
  });

  test.each([
    [['wait']],
    [['wait', '']],
    [['wait', '0']],
    [['wait', '99999999']],
    [['wait', '1', '2']],
    [['wait', '1', '--timeout', 'soon']],
    [['wait', '1', '--source', 'guess']],
    [['wait', '1', '--colour']],
    [['wait', '[z-a]']],
  ])('%j is wrong usage', async (args) => {
    const { code, stderr } = await call(...args);
    expect(code).toBe(2);
    expect(stderr).not.toBe('');
  });
});
