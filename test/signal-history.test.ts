import { SignalHistory, type End } from '../src/trace/signal-history';
import { SignalFlag, type TracedSignal } from '../src/trace/signal-records';

const SECOND = 1e9;
const HOUR = 3600 * SECOND;
const NOW = 10 * HOUR;
const SIGUSR1 = 10;
const SIGTERM = 15;
const SIGKILL = 9;

/** A SIGTERM by kill(2), a moment ago. */
function signal(changes: Partial<TracedSignal> = {}): TracedSignal {
  return {
    inode: 1001,
    startTicks: 500,
    pid: 100,
    name: 'target',
    signal: SIGTERM,
    timeNs: NOW,
    sentAtMs: NOW / 1e6,
    code: 0,
    flags: SignalFlag.group | SignalFlag.senderStack,
    senderPid: 7,
    senderName: 'sender',
    senderUid: 0,
    senderCgroup: 0,
    ancestors: [],
    ...changes,
  };
}

function end(changes: Partial<End> = {}): End {
  return { pid: 100, inode: 1001, startTicks: 500, timeNs: NOW, signal: null, ...changes };
}

/** The story of one process that was sent these. */
function story(signals: Partial<TracedSignal>[], ended: Partial<End> = {}) {
  const history = new SignalHistory();
  for (const changes of signals) history.add(signal(changes));
  return history.end(end(ended), false);
}

test('a SIGTERM of an hour ago is not offered for an end of now', () => {
  const { received } = story([
    { timeNs: NOW - HOUR },
    { timeNs: NOW - 119 * SECOND, senderPid: 8 },
  ]);
  expect(received.map(({ pid }) => pid)).toEqual([8]);
});

test('but it is named where it kills: it was blocked until now', () => {
  const { sender, received } = story([{ timeNs: NOW - HOUR }], { signal: 'SIGTERM' });
  expect(sender).toMatchObject({ origin: 'kill', pid: 7 });
  expect(received).toEqual([]);
});

test('what was caught did not kill', () => {
  const flags = SignalFlag.group | SignalFlag.caught;
  expect(story([{ flags }], { signal: 'SIGTERM' }).sender).toBeNull();
});

test('the signal with which the process began to die is the one, whatever came later', () => {
  const deadly = { flags: SignalFlag.group | SignalFlag.deadly, senderPid: 8 };
  const { sender } = story([{}, deadly, { senderPid: 9 }], { signal: 'SIGTERM' });
  expect(sender).toMatchObject({ pid: 8 });
});

test('what was sent after the end is another’s, and so is what had the pid before', () => {
  expect(story([{ timeNs: NOW + 1 }], { signal: 'SIGTERM' }).sender).toBeNull();
  expect(story([{ inode: 1000 }], { signal: 'SIGTERM' }).sender).toBeNull();
  expect(story([{ inode: 0, startTicks: 400 }], { signal: 'SIGTERM' }).sender).toBeNull();
});

test('two lives of one pid are kept apart where ends are told later than signals', () => {
  const history = new SignalHistory();
  history.add(signal({ senderPid: 8 }));
  history.add(signal({ inode: 1002, startTicks: 501, senderPid: 9 }));
  const first = history.end(end({ signal: 'SIGTERM' }), false);
  const second = history.end(end({ inode: 1002, startTicks: 501, signal: 'SIGTERM' }), false);
  expect([first.sender?.pid, second.sender?.pid]).toEqual([8, 9]);
});

test('an end that is told twice has its story twice, and then no more', () => {
  const history = new SignalHistory();
  history.add(signal());
  expect(history.end(end(), true).received).toHaveLength(1);
  expect(history.end(end(), false).received).toHaveLength(1);
  expect(history.end(end(), false).received).toHaveLength(0);
});

test('who sends hundreds of signals does not hide the one that counts', () => {
  const flood = Array.from({ length: 500 }, () => ({ signal: SIGUSR1, senderPid: 66 }));
  const { received } = story([...flood, {}, ...flood]);
  expect(received).toHaveLength(16);
  expect(received.filter((each) => each.signal === 'SIGTERM')).toMatchObject([{ pid: 7 }]);
});

const BY_OOM = { signal: SIGKILL, flags: SignalFlag.privileged | SignalFlag.deadly, senderPid: 50 };
const MARK = { signal: 0, flags: SignalFlag.oom, senderPid: 50 };

test('the OOM killer marks whom it has just killed', () => {
  const { sender, oom } = story([{ ...BY_OOM, timeNs: NOW - 20_000 }, MARK], { signal: 'SIGKILL' });
  expect(sender).toMatchObject({ origin: 'kernel' });
  expect(oom).toBe(true);
});

test('and who is dying anyhow: who was killed by somebody else was not killed by it', () => {
  expect(story([{ signal: SIGKILL }, MARK], { signal: 'SIGKILL' }).oom).toBe(false);
  const before = { ...BY_OOM, senderPid: 60, timeNs: NOW - 20_000 };
  expect(story([before, MARK], { signal: 'SIGKILL' }).oom).toBeNull();
  expect(
    story([{ ...BY_OOM, timeNs: NOW - 5 * SECOND }, MARK], { signal: 'SIGKILL' }).oom,
  ).toBeNull();
});

const THREAD = SignalFlag.senderStack;

test('where several were pending, nobody knows which was taken first', () => {
  const killer = (...signals: Partial<TracedSignal>[]) =>
    story(signals, { signal: 'SIGTERM' }).sender;
  expect(killer({ flags: THREAD, senderPid: 8 }, { senderPid: 9 })).toBeNull();
  expect(killer({ flags: THREAD, senderPid: 8 }, { flags: THREAD, senderPid: 9 })).toBeNull();
  const threads = [8, 9].map((senderPid) => ({ flags: THREAD, senderPid }));
  expect(killer(...threads, { senderPid: 9 })).toBeNull();
  const realTime = [8, 9].map((senderPid) => ({ signal: 37, senderPid }));
  expect(story(realTime, { signal: 'SIGRTMIN+3' }).sender).toBeNull();
  // A second one that was not pending already: the first was taken.
  expect(killer({ senderPid: 8 }, { senderPid: 9 })).toMatchObject({ pid: 9 });
});

test('what waited when signals were lost may have been taken, and is named no more', () => {
  const history = new SignalHistory();
  history.add(signal());
  history.doubtSignals();
  expect(history.end(end({ signal: 'SIGTERM' }), false).sender).toBeNull();
});

test('where ends were lost, a later owner of the pid of whom little is known is told nothing', () => {
  const history = new SignalHistory();
  history.add(signal());
  history.doubtLives();
  const unknown = end({ inode: 0, startTicks: 0 });
  expect(history.end(unknown, false)).toMatchObject({ received: [], isDoubtful: true });
  expect(history.end(end(), false)).toMatchObject({ isDoubtful: false });
});

test('what was ignored was not received', () => {
  const flags = SignalFlag.group | SignalFlag.ignored;
  expect(story([{ flags }]).received).toEqual([]);
});

test('what nobody asks for any more is forgotten', () => {
  const history = new SignalHistory();
  history.add(signal());
  history.forget({ pid: 100, inode: 1001, startTicks: 500 });
  expect(history.end(end(), false).received).toEqual([]);
});
