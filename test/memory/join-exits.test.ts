// Lane: unit

import type { SignalSender } from '../../src';
import { joined } from '../../src/memory/join-exits';

import { endOf, killedBy } from '../support/journal';

/** The sender as the live trace knows it: with its arguments, and who may have asked it. */
function liveSender(pid: number): SignalSender {
  return {
    ...recordedSender(pid),
    ...{ commandLine: ['systemd', '--system'], onBehalf: true, onBehalfReason: 'service-manager' },
    likelyClients: [],
  } as SignalSender;
}

function recordedSender(pid: number): SignalSender {
  const { sender } = killedBy('systemd', pid, 0);
  if (sender == null) throw new Error('it has a sender');
  return sender;
}

const LIVE = {
  ...killedBy('systemd', 7, 0),
  sender: liveSender(7),
  signalsReceived: [liveSender(7)],
};
const RECORDED = {
  ...killedBy('systemd', 7, 0),
  ...{ signalsReceived: [recordedSender(7)], source: 'recorder' },
};
const EXITED = { how: 'exited', exitCode: 0, signal: null, sender: null };
const UNTRACED = {
  ...{ traced: false, tracedSince: null, requestsSince: null },
  ...{ sender: null, signalsReceived: [], oom: null },
};

/** Of the same end. */
const join = (live: object, recorded: object) => joined(endOf(0, live), endOf(0, recorded));

test.each(['pidfd', 'connector'] as const)(
  'the recorder takes nothing from what the live trace knows of a sender: %s',
  (source) => {
    const event = join({ ...LIVE, source }, { ...RECORDED, coreDumped: true });
    expect(event).toMatchObject({ traced: true, sender: LIVE.sender });
    expect(event.signalsReceived).toEqual(LIVE.signalsReceived);
    // Of a pidfd's status and core it knows more.
    const isBetter = source === 'pidfd';
    expect(event).toMatchObject({
      coreDumped: isBetter,
      source: isBetter ? 'recorder' : 'connector',
    });
  },
);

test('the recorder tells the sender where the live trace saw nothing', () => {
  const event = join({ ...LIVE, ...UNTRACED, source: 'pidfd' }, RECORDED);
  expect(event).toMatchObject({ traced: true, sender: RECORDED.sender });
  expect(event.signalsReceived).toEqual(RECORDED.signalsReceived);
});

test('a live sender stays where neither trace saw everything', () => {
  const event = join({ ...LIVE, traced: false, tracedSince: null }, { ...RECORDED, ...UNTRACED });
  expect(event).toMatchObject({ traced: false, tracedSince: null, sender: LIVE.sender });
});

test('the sender belongs to the end that is told: the recorder has another one than the pidfd', () => {
  const received = { signalsReceived: [liveSender(7)] };
  const killed = join({ ...EXITED, ...received, source: 'pidfd' }, RECORDED);
  expect(killed).toMatchObject({ how: 'killed', traced: true, sender: RECORDED.sender });
  expect(killed.signalsReceived).toEqual(received.signalsReceived);
  const unseen = join({ ...EXITED, ...received, source: 'pidfd' }, { ...RECORDED, ...UNTRACED });
  expect(unseen).toMatchObject({ how: 'killed', traced: false, sender: null });
  const exited = join({ ...LIVE, source: 'pidfd' }, { ...EXITED, exitCode: 7 });
  expect(exited).toMatchObject({ how: 'exited', exitCode: 7, traced: true, sender: null });
});

test('the recorder has the signals from before the live trace began', () => {
  const before = (ms: number) => new Date(endOf(0).exitedAt.getTime() - ms);
  const early = { ...recordedSender(8), sentAt: before(400) };
  const late = { ...recordedSender(9), sentAt: before(100) };
  const lateLive = { ...liveSender(9), sentAt: late.sentAt };
  const live = { ...EXITED, tracedSince: before(200), signalsReceived: [lateLive] };
  const event = join(live, { ...EXITED, signalsReceived: [early, late] });
  expect(event.signalsReceived).toEqual([early, lateLive]);
  expect(event).toMatchObject({ traced: true, tracedSince: before(500) });
});
