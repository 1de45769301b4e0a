// Lane: unit

import { CgroupPaths } from '../../src/trace/cgroup-paths';
import { SignalHistory } from '../../src/trace/signal-history';
import type { End } from '../../src/native/kernel-records';
import { SignalFlag } from '../../src/native/abi';
import type { TracedSignal } from '../../src/native/signal-records';
import { originOf } from '../../src/trace/signal-sender';

import { end, HOUR, NOW, SECOND, signal, taken, TARGET } from '../support/signals';

const SIGUSR1 = 10;
const SIGKILL = 9;

/** These tests do not use cgroups. */
const noCgroups = () => new CgroupPaths(() => undefined);

/** The history of one process that was sent these signals. */
function story(signals: Partial<TracedSignal>[], ended: Partial<End> = {}) {
  const history = new SignalHistory(noCgroups());
  for (const changes of signals) history.add(signal(changes));
  return history.end(end(ended), false);
}

const { group, inSyscall, noInfo, senderExiting, senderPtraces } = SignalFlag;

test.each<[string, Partial<TracedSignal>, string]>([
  ['kill(2) since Linux 7.3', { flags: noInfo | group | inSyscall }, 'kill'],
  [
    'kill(2) of the process itself',
    { flags: noInfo | group | inSyscall, senderPid: TARGET },
    'kill',
  ],
  ['an interrupt', { flags: noInfo | group }, 'kernel'],
  ['the end of the parent', { flags: noInfo | group | inSyscall | senderExiting }, 'parent-death'],
  ['a broken pipe', { flags: noInfo | inSyscall, senderPid: TARGET, signal: 13 }, 'kernel'],
  ['cgroup.kill', { flags: noInfo | inSyscall, signal: SIGKILL }, 'cgroup-kill'],
  ['PTRACE_KILL', { flags: noInfo | inSyscall | senderPtraces, signal: SIGKILL }, 'ptrace'],
])('without a siginfo, %s is recognized by how the signal was sent', (_, changes, origin) => {
  expect(originOf(signal(changes))).toBe(origin);
});

const [SIGHUP, SIGINT, SIGQUIT] = [1, 2, 3];

describe('requests of others are known for the whole life of a process', () => {
  test.each([
    ['SIGHUP', SIGHUP],
    ['SIGINT', SIGINT],
    ['SIGQUIT', SIGQUIT],
    ['SIGTERM', 15],
  ])('%s: the first and the last, however old', (_, number) => {
    const asked = [9, 8, 7, 6, 5].map((hours) => ({
      ...{ timeNs: NOW - hours * HOUR, signal: number },
      ...{ senderPid: 10 + hours },
    }));
    const { received } = story([...asked, { timeNs: NOW - 200 * SECOND, signal: SIGUSR1 }]);
    expect(received.map(({ pid }) => pid)).toEqual([19, 15]);
  });

  test('however many other signals come after them, of however many senders', () => {
    const flood = Array.from({ length: 300 }, (_, i) => ({
      ...{ timeNs: NOW - 90 * SECOND + i * 1e6, signal: i % 2 === 0 ? SIGHUP : SIGUSR1 },
      senderPid: 1000 + i,
    }));
    const { received } = story([{ timeNs: NOW - 100 * SECOND, senderPid: 8 }, ...flood]);
    const told = received.map(({ signal: name, pid }) => `${name} ${pid}`);
    expect(told.slice(0, 2)).toEqual(['SIGTERM 8', 'SIGHUP 1000']);
    expect(told.at(-1)).toBe('SIGUSR1 1299');
    // Of the others the last 16.
    expect(told).toHaveLength(2 + 16 + 1);
  });

  test('what it sent itself, and other signals, only for two minutes', () => {
    const old = { timeNs: NOW - 121 * SECOND };
    const { received } = story([
      { ...old, senderPid: TARGET },
      { ...old, signal: SIGUSR1 },
      { timeNs: NOW - 119 * SECOND, signal: SIGUSR1, senderPid: 8 },
    ]);
    expect(received.map(({ pid }) => pid)).toEqual([8]);
  });

  test('who asked an hour before it raised the signal again is named', () => {
    const own = { timeNs: NOW - SECOND, senderPid: TARGET, code: -6 };
    const { sender, raisedAfter } = story(
      [{ timeNs: NOW - HOUR, senderPid: 8 }, own, taken({ senderPid: TARGET, code: -6 })],
      { signal: 'SIGTERM' },
    );
    expect([sender?.pid, raisedAfter?.pid]).toEqual([TARGET, 8]);
  });

  test('who sent another signal is named only for two minutes', () => {
    const own = { senderPid: TARGET, code: -6, signal: SIGUSR1 };
    const raisedAfter = (seconds: number) =>
      story([{ timeNs: NOW - seconds * SECOND, signal: SIGUSR1 }, own, taken(own)], {
        signal: 'SIGUSR1',
      }).raisedAfter?.pid;
    expect([raisedAfter(119), raisedAfter(121)]).toEqual([7, undefined]);
  });

  test('not what came after its end, nor what an earlier process with its pid was sent', () => {
    const { received } = story([
      { timeNs: NOW - 2 * HOUR, inode: 999, startTicks: 400, senderPid: 8 },
      { timeNs: NOW - HOUR },
      { timeNs: NOW + SECOND, senderPid: 9 },
    ]);
    expect(received.map(({ pid }) => pid)).toEqual([7]);
  });
});

test('an old SIGTERM is named as the killer if it was blocked until now', () => {
  const { sender, received } = story([{ timeNs: NOW - HOUR }, taken()], { signal: 'SIGTERM' });
  expect(sender).toMatchObject({ origin: 'kill', pid: 7 });
  expect(received).toEqual([sender]);
});

test('a signal that was not seen to be taken did not kill', () => {
  expect(story([{}], { signal: 'SIGTERM' }).sender).toBeNull();
});

test('the killer is the signal with which the process began to die, whatever comes later', () => {
  const deadly = { flags: SignalFlag.group | SignalFlag.deadly, senderPid: 8 };
  const { sender } = story([{}, deadly, { senderPid: 9 }], { signal: 'SIGTERM' });
  expect(sender).toMatchObject({ pid: 8 });
});

test('a signal sent after the end, or to an earlier process with the pid, does not count', () => {
  const killedBy = (changes: Partial<TracedSignal>) =>
    story([changes, taken(changes)], { signal: 'SIGTERM' }).sender;
  expect(killedBy({})).toMatchObject({ pid: 7 });
  expect(killedBy({ timeNs: NOW + 1 })).toBeNull();
  expect(killedBy({ inode: 1000 })).toBeNull();
  expect(killedBy({ inode: 0, startTicks: 400 })).toBeNull();
});

test('two processes with one pid keep separate histories if their ends arrive after later signals', () => {
  const history = new SignalHistory(noCgroups());
  const later = { inode: 1002, startTicks: 501, senderPid: 9 };
  history.add(signal({ senderPid: 8 }));
  history.add(taken({ senderPid: 8 }));
  history.add(signal(later));
  history.add(taken(later));
  const first = history.end(end({ signal: 'SIGTERM' }), false);
  const second = history.end(end({ inode: 1002, startTicks: 501, signal: 'SIGTERM' }), false);
  expect([first.sender?.pid, second.sender?.pid]).toEqual([8, 9]);
});

test('an end that is reported twice has its history twice, which is then dropped', () => {
  const history = new SignalHistory(noCgroups());
  history.add(signal());
  expect(history.end(end(), true).received).toHaveLength(1);
  expect(history.end(end(), false).received).toHaveLength(1);
  expect(history.end(end(), false).received).toHaveLength(0);
});

test('hundreds of signals from one sender do not displace the one that counts', () => {
  const flood = Array.from({ length: 500 }, () => ({ signal: SIGUSR1, senderPid: 66 }));
  const { received } = story([...flood, {}, ...flood]);
  expect(received).toHaveLength(16 + 1);
  expect(received.filter((each) => each.signal === 'SIGTERM')).toMatchObject([{ pid: 7 }]);
});

const BY_OOM = { signal: SIGKILL, flags: SignalFlag.privileged | SignalFlag.deadly, senderPid: 50 };
const MARK = { signal: 0, flags: SignalFlag.oom, senderPid: 50 };

test('a mark of the OOM killer counts for the process that it has just killed', () => {
  const { sender, oom } = story([{ ...BY_OOM, timeNs: NOW - 20_000 }, MARK], { signal: 'SIGKILL' });
  expect(sender).toMatchObject({ origin: 'kernel' });
  expect(oom).toBe(true);
});

test('a mark of the OOM killer does not count for a process that dies of another signal', () => {
  const byOther = { signal: SIGKILL, flags: SignalFlag.group | SignalFlag.deadly };
  expect(story([byOther, MARK], { signal: 'SIGKILL' }).oom).toBe(false);
  const before = { ...BY_OOM, senderPid: 60, timeNs: NOW - 20_000 };
  expect(story([before, MARK], { signal: 'SIGKILL' }).oom).toBeNull();
  const reused = { ...BY_OOM, senderStart: 1, timeNs: NOW - 20_000 };
  expect(story([reused, MARK], { signal: 'SIGKILL' }).oom).toBeNull();
  const dying = { ...BY_OOM, flags: BY_OOM.flags | SignalFlag.senderExiting };
  expect(story([dying, MARK], { signal: 'SIGKILL' }).oom).toBe(false);
  expect(
    story([{ ...BY_OOM, timeNs: NOW - 5 * SECOND }, MARK], { signal: 'SIGKILL' }).oom,
  ).toBeNull();
});

describe('a process that sends itself a signal it was sent', () => {
  const own = (changes: Partial<TracedSignal> = {}) => ({
    ...{ flags: SignalFlag.toItself | SignalFlag.senderStack | SignalFlag.deadly },
    ...{ code: -6, senderPid: 100 },
    ...changes,
  });
  const raisedAfter = (...signals: Partial<TracedSignal>[]) =>
    story(signals, { signal: 'SIGTERM' }).raisedAfter;

  test('raised it after the last sender of that signal', () => {
    const sent = [{ timeNs: NOW - 3000 }, { timeNs: NOW - 2000, senderPid: 8 }];
    expect(raisedAfter(...sent, own())).toMatchObject({ signal: 'SIGTERM', pid: 8 });
    expect(story([...sent, own()], { signal: 'SIGTERM' }).sender).toMatchObject({ pid: 100 });
  });

  test('raised it on its own if nobody sent it, or another signal', () => {
    expect(raisedAfter(own())).toBeNull();
    expect(raisedAfter({ signal: SIGUSR1, timeNs: NOW - 2000 }, own())).toBeNull();
    expect(raisedAfter(own({ timeNs: NOW - 2000 }), { timeNs: NOW - 1000 })).toBeNull();
  });

  test('did not raise it if another process’s signal killed it', () => {
    const flags = SignalFlag.group | SignalFlag.deadly;
    expect(raisedAfter({ timeNs: NOW - 2000 }, { flags, senderPid: 8 })).toBeNull();
  });
});

test('after lost ends, a later owner of the pid that cannot be identified gets no history', () => {
  const history = new SignalHistory(noCgroups());
  history.add(signal());
  history.doubtRuns();
  const unknown = end({ inode: 0, startTicks: 0 });
  expect(history.end(unknown, false)).toMatchObject({ received: [], isDoubtful: true });
  expect(history.end(end(), false)).toMatchObject({ isDoubtful: false });
});

test('an ignored signal was not received', () => {
  const flags = SignalFlag.group | SignalFlag.ignored;
  expect(story([{ flags }]).received).toEqual([]);
});

test('the history of an unwatched process is dropped', () => {
  const history = new SignalHistory(noCgroups());
  history.add(signal());
  history.forget({ pid: 100, inode: 1001, startTicks: 500 });
  expect(history.end(end(), false).received).toEqual([]);
});
