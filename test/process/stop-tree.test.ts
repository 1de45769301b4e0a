// Lane: patient

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { identify, type ProcessIdentity } from '../../src';
import {
  IntentLog,
  type IntentRecorder,
  isAlive,
  readIntents,
  stop,
  type StopResult,
  type StopWait,
} from '../../src/process';

import { CGROUP2, cgroupName, itWithCgroup } from '../support/cgroup2';
import { call, callWith, MAIN } from '../support/command';
import { dead } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { until } from '../support/wait';

const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];

let folder: string;
const cgroups: string[] = [];
const started: LineProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-tree-'));
  chmodSync(folder, 0o777);
});

afterEach(async () => {
  for (const { child } of started.splice(0)) child.kill('SIGKILL');
  for (const cgroup of cgroups.splice(0)) {
    writeFileSync(join(cgroup, 'cgroup.kill'), '1');
    const processes = () => readFileSync(join(cgroup, 'cgroup.procs'), 'latin1');
    await until(`${cgroup} to be empty`, () => processes() === '', processes);
    rmdirSync(cgroup);
  }
  rmSync(folder, { recursive: true });
});

function newCgroup(): string {
  const cgroup = cgroupName();
  mkdirSync(cgroup);
  cgroups.push(cgroup);
  return cgroup;
}

/** A shell that prints the pids of its children, one per line. */
async function shell(
  script: string,
  lines: number,
): Promise<{ root: LineProcess; pids: number[] }> {
  const root = new LineProcess('sh', ['-c', script]);
  started.push(root);
  const pids = (await root.take(lines)).map(Number);
  for (const pid of [root.pid, ...pids]) if (pid > 0) known.set(pid, identify(pid));
  return { root, pids };
}

/** Who had these pids: others may get them. */
const known = new Map<number, ProcessIdentity | null>();
const lives = (pids: readonly number[]) =>
  pids.map((pid) => {
    const identity = known.get(pid);
    return identity === null ? 'dead' : isAlive(identity ?? pid);
  });
const outcomes = ({ tree }: StopResult) => tree?.members.map(({ outcome }) => outcome);

test('without --tree a shell’s child lives on; with it, both end gracefully', async () => {
  const left = await shell('sleep 1000 & echo $!; wait', 1);
  expect(await stop(left.root.pid)).not.toHaveProperty('tree');
  expect(lives(left.pids)).toEqual(['alive']);
  expect(await stop(left.pids[0] ?? 0)).toMatchObject({ outcome: 'graceful' });

  const { root, pids } = await shell('sleep 1000 & echo $!; sleep 1000 & echo $!; wait', 2);
  const identity = identify(root.pid);
  const result = await stop(root.pid, { tree: true });
  expect(lives([root.pid, ...pids])).toEqual(['dead', 'dead', 'dead']);
  expect(result).toMatchObject({
    outcome: 'graceful',
    via: 'signal',
    identity,
    exit: { pid: root.pid, signal: 'SIGTERM' },
    warnings: [],
    tree: { cgroup: null },
  });
  expect(result.tree?.members).toMatchObject([
    { identity, name: 'sh', foundBy: 'target', outcome: 'graceful', exit: { signal: 'SIGTERM' } },
    ...pids.map((pid) => ({
      ...{ identity: { pid }, name: 'sleep', foundBy: 'parent', outcome: 'graceful' },
      exit: { pid, how: 'killed', signal: 'SIGTERM' },
    })),
  ]);
  expect(await stop(root.pid, { tree: true })).toMatchObject({ outcome: 'already-gone' });
});

test('concurrent stops of a tree signal each member once', async () => {
  const { root, pids } = await shell(`trap '' TERM; sleep 1000 & echo $!; wait; wait`, 1);
  const log = join(folder, 'intents');
  const options = { tree: true, forceKillAfterDelayMs: 100, intentLog: log };
  const results = await Promise.all([stop(root.pid, options), stop(root.pid, options)]);
  expect(results.map(({ outcome }) => outcome)).toEqual(['forced', 'forced']);
  const intents = await readIntents(log);
  const asked = intents.filter(({ what }) => what === 'SIGTERM');
  expect(asked.map(({ identity: { pid } }) => pid)).toEqual([root.pid, ...pids]);
});

test('each signal to each member is on record before it is sent, and its outcome afterwards', async () => {
  const { root, pids } = await shell(
    `sh -c "trap '' TERM; echo \\$\\$; exec sleep 1000" & sleep 1000 & echo $!; wait`,
    2,
  );
  const log = join(folder, 'intents');
  const file = new IntentLog(log);
  const slow: IntentRecorder = {
    append: (intent) => file.append(intent),
    settle: async (id, outcome) => {
      await setTimeout(20);
      await file.settle(id, outcome);
    },
  };
  const result = await stop(root.pid, {
    tree: true,
    forceKillAfterDelayMs: 2000,
    intentLog: slow,
    reason: 'a test',
  });
  expect(result.outcome).toBe('forced');
  expect(outcomes(result)?.sort()).toEqual(['forced', 'graceful', 'graceful']);
  const stubborn = result.tree?.members.find(({ outcome }) => outcome === 'forced')?.identity;
  const others = [root.pid, ...pids].filter((pid) => pid !== stubborn?.pid);
  const intents = await readIntents(log);
  expect(intents.map(({ identity: { pid }, what, outcome }) => [pid, what, outcome])).toEqual(
    expect.arrayContaining([
      ...others.map((pid) => [pid, 'SIGTERM', 'delivered']),
      ...['SIGTERM', 'SIGSTOP', 'SIGKILL'].map((what) => [stubborn?.pid, what, 'delivered']),
    ]) as unknown,
  );
  expect(intents).toHaveLength(5);
  expect(intents[0]).toMatchObject({ identity: { pid: root.pid }, why: 'a test' });
  await file.close();
});

test('if an intent cannot be written down, no member is signalled', async () => {
  const stranger = await mortal('--stranger', '--child');
  for (const killSignal of ['SIGTERM', 'SIGKILL'] as const) {
    await expect(
      stop(stranger.pid, { tree: true, killSignal, intentLog: '/dev/full' }),
    ).rejects.toMatchObject({ code: 'ERR_EXITWATCH_INTENT_LOG' });
  }
  expect(isAlive(stranger.pid)).toBe('alive');
  expect(await release(stranger)).toBe(0);
});

test('a member may finish its work after the signal', async () => {
  const done = join(folder, 'done');
  const script = `trap 'sleep 0.3 && echo done > ${done}; exit 3' TERM; sleep 1000 & echo $!; wait`;
  const { root, pids } = await shell(script, 1);
  // Until then it may catch the signal, as a copy of the shell.
  const comm = () => readFileSync(`/proc/${pids[0]}/comm`, 'latin1');
  await until('the child to be sleep', () => comm() === 'sleep\n', comm);
  const result = await stop(root.pid, { tree: true });
  expect(result).toMatchObject({ outcome: 'graceful', exit: { how: 'exited', exitCode: 3 } });
  expect(readFileSync(done, 'latin1')).toBe('done\n');
});

test('a member that survives is reported, and the pidfile stays', async () => {
  const pidfile = join(folder, 'some.pid');
  const { root, pids } = await shell(
    `sh -c "trap '' TERM; echo \\$\\$; while :; do sleep 1; done" & wait`,
    1,
  );
  writeFileSync(pidfile, String(root.pid), { mode: 0o600 });
  const options = { tree: true, forceKillAfterDelayMs: false, confirmTimeoutMs: 2000 } as const;
  const result = await stop(root.pid, { ...options, pidfile });
  expect(result).toMatchObject({ outcome: 'timed-out', via: 'signal', exit: null });
  expect(result.tree?.members.find(({ identity: { pid } }) => pid === pids[0])).toMatchObject({
    outcome: 'timed-out',
    exit: null,
  });
  expect(result.tree?.members[0]).toMatchObject({ outcome: 'graceful', exit: { pid: root.pid } });
  expect(existsSync(pidfile)).toBe(true);
  expect(await stop(pids[0] ?? 0, { tree: true, killSignal: 'SIGKILL' })).toMatchObject({
    outcome: 'forced',
  });
});

test('a control call asks the process, and the others get the signal once it has ended', async () => {
  const root = await mortal('--ignore-term');
  const { root: other, pids } = await shell('sleep 1000 & echo $!; read x', 1);
  const control = () => {
    other.child.stdin.end();
    return Promise.resolve();
  };
  const begin = performance.now();
  const result = await stop(other.pid, { tree: true, control, forceKillAfterDelayMs: 10_000 });
  expect(performance.now() - begin).toBeLessThan(5000);
  expect(result).toMatchObject({ outcome: 'graceful', via: 'signal', exit: { how: 'exited' } });
  expect(lives(pids)).toEqual(['dead']);
  expect(isAlive(root.pid)).toBe('alive');
  await release(root);
});

test('after the last wait is aborted no further step follows, and no process stays suspended', async () => {
  const { root, pids } = await shell(`trap '' TERM; sleep 1000 & echo $!; wait; wait`, 1);
  const all = [root.pid, ...pids];
  const options = { tree: true, forceKillAfterDelayMs: 200, signal: AbortSignal.timeout(100) };
  await expect(stop(root.pid, options)).rejects.toMatchObject({ code: 'ERR_EXITWATCH_ABORTED' });
  await setTimeout(400);
  expect(lives(all)).toEqual(['alive', 'alive']);
  const states = all.map((pid) => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0]);
  expect(states).toEqual(['S', 'S']);
  expect(await stop(root.pid, { tree: true, killSignal: 'SIGKILL' })).toMatchObject({
    outcome: 'forced',
  });
  expect(lives(all)).toEqual(['dead', 'dead']);
});

test('the session of a zombie still exists, and is stopped', async () => {
  const script = `
    setsid sh -c 'sleep 1000 & echo $! $$; exit 7' &
    exec sleep 1000`;
  const parent = new LineProcess('sh', ['-c', script]);
  started.push(parent);
  const [child = 0, zombie = 0] = ((await parent.line()) ?? '').split(' ').map(Number);
  await dead(zombie);
  const result = await stop(zombie, { tree: true });
  expect(result).toMatchObject({ outcome: 'graceful', via: 'signal' });
  expect(outcomes(result)).toEqual(['already-gone', 'graceful']);
  expect(isAlive(child)).toBe('dead');
  expect(isAlive(parent.pid)).toBe('alive');
  await stop(parent.pid, { tree: true });
});

test('the trees of init, of this process and of its ancestors are refused, even with force', async () => {
  for (const pid of [1, process.pid, process.ppid]) {
    await expect(stop(pid, { tree: true, force: true })).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_REFUSED',
    });
  }
  const asking = new LineProcess('sh', [
    '-c',
    `${process.execPath} ${MAIN} stop $$ --tree; echo $?`,
  ]);
  expect(await asking.rest()).toEqual(['125']);
  expect(asking.stderr).toContain('an ancestor of this process');
});

test('onWait reports which processes are awaited, and what follows', async () => {
  const { root, pids } = await shell(`trap '' TERM; sleep 1000 & echo $!; wait; wait`, 1);
  const told: StopWait[] = [];
  const onWait = (wait: StopWait) => void told.push(wait);
  await stop(root.pid, { tree: true, forceKillAfterDelayMs: 100, confirmTimeoutMs: 9000, onWait });
  const both = [
    { identity: identify(root.pid) ?? { pid: root.pid }, name: 'sh' },
    { identity: { pid: pids[0] }, name: 'sleep' },
  ];
  expect(told[0]).toMatchObject({ via: 'signal', waitingFor: both, next: 'SIGKILL', inMs: 100 });
  const child = await mortal('--ignore-term');
  told.length = 0;
  await stop(child.pid, { forceKillAfterDelayMs: 50, onWait });
  expect(told[0]).toMatchObject({
    via: 'signal',
    waitingFor: [{ name: 'mortal' }],
    next: 'SIGKILL',
  });
});

itAsRoot('a member of another user is reported, and the other members are stopped', async () => {
  const script = `sleep 1000 & echo $!; exec ${NOBODY.join(' ')} sleep 1000`;
  const { root, pids } = await shell(script, 1);
  const [ours = 0] = pids;
  const status = () => readFileSync(`/proc/${root.pid}/status`, 'latin1');
  await until('setpriv to change its user', () => status().includes('Uid:\t65534'), status);
  const args = ['stop', String(root.pid), '--tree', '--kill-after', '300ms'];
  const stopped = await callWith(NOBODY, ...args);
  expect(stopped).toMatchObject({ code: 124, lines: [`${ours} (sleep) is still running`] });
  expect(stopped.stderr).toContain(`this user may not signal process ${ours}`);
  expect(lives([root.pid, ours])).toEqual(['dead', 'alive']);
  await stop(ours);
});

test('without pidfds a tree is stopped, too, and the risk is reported', async () => {
  const { root, pids } = await shell(`trap '' TERM; sleep 1000 & echo $!; wait; wait`, 1);
  const without = [program('without'), 'pidfd_open', 'errno'];
  const args = ['stop', String(root.pid), '--tree', '--kill-after', '200ms'];
  const { code, stderr } = await callWith(without, ...args);
  expect(code).toBe(0);
  expect(stderr).toContain('its pid');
  expect(lives([root.pid, ...pids])).toEqual(['dead', 'dead']);
});

itAsRoot('hidden processes are reported, and nothing is done if /proc cannot be read', async () => {
  const hide = 'mount -t proc -o hidepid=2 proc /proc; exec "$@"';
  const hidden = ['unshare', '-m', 'sh', '-c', hide, 'sh', ...NOBODY];
  const own = new LineProcess(NOBODY[0] ?? '', [...NOBODY.slice(1), 'sh', '-c', 'echo; read x']);
  started.push(own);
  await own.line();
  const seen = await callWith(hidden, 'stop', String(own.pid), '--tree');
  expect(seen).toMatchObject({ code: 0 });
  expect(seen.stderr).toContain('/proc hides some processes (hidepid)');

  const stranger = await mortal('--stranger', '--child');
  const nothing = ['unshare', '-m', 'sh', '-c', 'umount -l /proc; exec "$@"', 'sh'];
  const blind = await callWith(nothing, 'stop', String(stranger.pid), '--tree');
  expect(blind).toMatchObject({ code: 125, lines: [] });
  // This /proc is the host's, where other processes have these pids.
  const script = `sleep 1000 & ${process.execPath} ${MAIN} stop $! --tree; echo $?; kill -0 $! && echo there`;
  const foreign = new LineProcess('unshare', ['-pf', 'sh', '-c', script]);
  expect(await foreign.rest()).toEqual(['125', 'there']);
  expect(await release(stranger)).toBe(0);
});

describe('in a cgroup', () => {
  /** A script that moves itself into a cgroup, and then runs `script`. */
  const inside = (cgroup: string, script: string) => `echo 0 > ${cgroup}/cgroup.procs; ${script}`;
  /** Ends once its child, which is in a session of its own, has printed its pid. */
  const ORPHAN =
    `setsid sh -c 'echo $$; exec sleep 1000' & ` +
    `until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.05; done`;

  itWithCgroup('of its own, orphans that have left everything else belong to it', async () => {
    const cgroup = newCgroup();
    const script = inside(cgroup, `(${ORPHAN}); echo $$; exec sleep 1000`);
    const { root, pids } = await shell(script, 2);
    const result = await stop(root.pid, { tree: true });
    expect(result.tree?.cgroup).toBe(cgroup.slice(CGROUP2?.length));
    expect(result.tree?.members).toMatchObject([
      { foundBy: 'target', outcome: 'graceful' },
      { foundBy: 'cgroup', outcome: 'graceful', identity: { pid: pids[0] } },
    ]);
    expect(lives(pids)).toEqual(['dead', 'dead']);
  });

  itWithCgroup('of its own, orphans are stopped even without write permission to it', async () => {
    const cgroup = newCgroup();
    const stubborn = `trap '' TERM; (${ORPHAN}); while :; do sleep 0.1; done`;
    const { root, pids } = await shell(
      inside(cgroup, `exec ${NOBODY.join(' ')} sh -c "${stubborn.replaceAll('$', '\\$')}"`),
      1,
    );
    const args = ['stop', String(root.pid), '--tree', '--kill-after', '300ms', '--json'];
    const { code, lines } = await callWith(NOBODY, ...args);
    expect(code).toBe(0);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      outcome: 'forced',
      tree: { cgroup: cgroup.slice(CGROUP2?.length) },
    });
    expect(lives([root.pid, ...pids])).toEqual(['dead', 'dead']);
  });

  itWithCgroup(
    'of its own, what is forked before the kill is on record before it, too',
    async () => {
      const cgroup = newCgroup();
      const fifo = join(folder, 'fifo');
      const script = `trap '' TERM; mkfifo ${fifo}; echo $$; read x < ${fifo}; sleep 1000 & echo $!; wait`;
      const { root } = await shell(inside(cgroup, script), 1);
      const recorded: string[] = [];
      let late = 0;
      const intentLog = {
        append: async ({ identity, what }: { identity: ProcessIdentity; what: string }) => {
          if (what === 'SIGKILL' && recorded.length === 1) {
            writeFileSync(fifo, 'fork\n');
            late = Number(await root.line());
          }
          recorded.push(`${what} ${identity.pid}`);
          return String(recorded.length);
        },
        settle: () => Promise.resolve(),
      };
      const result = await stop(root.pid, { tree: true, forceKillAfterDelayMs: 100, intentLog });
      expect(recorded).toEqual([`SIGTERM ${root.pid}`, `SIGKILL ${root.pid}`, `SIGKILL ${late}`]);
      expect(result.tree?.cgroup).toBe(cgroup.slice(CGROUP2?.length));
      expect(result.tree?.members).toMatchObject([
        { identity: { pid: root.pid }, outcome: 'forced' },
        { identity: { pid: late }, outcome: 'forced' },
      ]);
    },
  );

  itWithCgroup('whose creator is gone, other processes there do not belong to it', async () => {
    const cgroup = newCgroup();
    // Both have lost their parents: nothing shows which of them started the other.
    const { pids } = await shell(inside(cgroup, `(${ORPHAN}); (${ORPHAN})`), 2);
    const [first = 0, second = 0] = pids;
    const result = await stop(first, { tree: true });
    expect(result).toMatchObject({ outcome: 'graceful', tree: { cgroup: null } });
    expect(result.tree?.members).toHaveLength(1);
    expect(lives(pids)).toEqual(['dead', 'alive']);
    await stop(second);
  });

  itWithCgroup('that also contains its parent, the others do not belong to it', async () => {
    const cgroup = newCgroup();
    const { root, pids } = await shell(
      inside(cgroup, `(${ORPHAN}); sleep 1000 & echo $!; wait`),
      2,
    );
    const [orphan = 0, target = 0] = pids;
    const result = await stop(target, { tree: true, forceKillAfterDelayMs: 0 });
    expect(result.tree).toMatchObject({ cgroup: null, members: [{ foundBy: 'target' }] });
    expect(lives([orphan, target])).toEqual(['alive', 'dead']);
    expect(root.child.signalCode).toBeNull();
  });
});

describe('the command', () => {
  test('says how many other processes were stopped', async () => {
    const script = `sh -c "trap '' TERM; echo \\$\\$; exec sleep 1000" & sleep 1000 & echo $!; wait`;
    const { root } = await shell(script, 2);
    const { code, lines, stderr } = await call(
      'stop',
      String(root.pid),
      '--tree',
      '--kill-after',
      '2s',
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(lines).toEqual([
      expect.stringMatching(
        /killed SIGTERM.*, by the signal; and 2 others in its tree, 1 by SIGKILL$/,
      ),
    ]);
  });

  test('says on a terminal which process it waits for, and for how long', async () => {
    const child = await mortal('--ignore-term');
    const stop = `${process.execPath} ${MAIN} stop ${child.pid} --kill-after 600ms`;
    const terminal = new LineProcess('script', ['-qec', stop, '/dev/null']);
    const lines = (await terminal.rest()).map((line) => line.trim());
    expect(lines).toEqual([
      // The remaining time.
      expect.stringMatching(`^waiting for ${child.pid} \\(mortal\\): SIGKILL in [1-6]\\d{0,2}ms$`),
      expect.stringMatching(/killed SIGKILL.*by SIGKILL$/),
    ]);
    const { root } = await shell(`trap '' TERM; sleep 1000 & sleep 1000 & echo; wait; wait`, 1);
    const tree = `${process.execPath} ${MAIN} stop ${root.pid} --tree --kill-after 1s`;
    const again = new LineProcess('script', ['-qec', tree, '/dev/null']);
    expect(((await again.line()) ?? '').trim()).toMatch(
      new RegExp(`^waiting for ${root.pid} \\(sh\\) and 2 others: SIGKILL in (1s|\\d{1,3}ms)$`),
    );
    await again.rest();
  });
});
