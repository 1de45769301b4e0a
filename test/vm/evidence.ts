import { identify, type ExitEvent, type SignalSender } from '../../src';
import type { Intent } from '../../src/process';
import type { StopEvidence } from '../../src/vm';
import { NOWHERE } from '../../src/where/whereabouts';

export type Evidence = Partial<StopEvidence>;

const identity = identify(process.pid);
if (identity === null) throw new Error('we are not there');

export const NOW = new Date('2026-01-01T12:00:00Z');
export const secondsAgo = (seconds: number) => new Date(NOW.getTime() - seconds * 1000);

/** A machine that exited with 0, without further evidence. */
export const EXIT: ExitEvent & { how: 'exited' } = {
  event: 'exit',
  id: identity.id,
  pid: identity.pid,
  parentPid: 1,
  name: 'qemu-system-x86',
  program: 'qemu-system-x86_64',
  uid: 0,
  ...{ parentName: null, usage: null, commandLine: null },
  cgroup: '/',
  ...NOWHERE,
  startedAt: secondsAgo(3600),
  exitedAt: NOW,
  exitedNs: null,
  uncertaintyMs: 0,
  source: 'connector',
  isRepeated: false,
  lossless: true,
  traced: true,
  tracedSince: secondsAgo(3600),
  requestsSince: secondsAgo(3600),
  sender: null,
  raisedAfter: null,
  signalsReceived: [],
  oom: false,
  how: 'exited',
  exitCode: 0,
  signal: null,
  coreDumped: false,
  unknownReason: null,
};

export function sender(signal: 'SIGTERM' | 'SIGKILL', pid = 7): SignalSender {
  return {
    signal,
    sentAt: NOW,
    origin: 'kill',
    ...{ pid, startedAt: null },
    name: 'sh',
    uid: 0,
    cgroup: null,
    ...NOWHERE,
    ...{ onBehalf: false, onBehalfReason: null, likelyClients: null, commandLine: null },
    ...{ program: null, ancestors: [] },
  };
}

export function intent(changes: Partial<Intent> = {}): Intent {
  return {
    event: 'intent',
    id: 'an-intent',
    at: secondsAgo(1),
    identity: identity ?? (undefined as never),
    what: 'SIGTERM',
    why: null,
    who: { identity: null, uid: 0 },
    deadline: new Date(NOW.getTime() + 5000),
    outcome: 'delivered',
    ...changes,
  };
}

/** A machine that was killed by a sender whom the signal trace saw. */
export function killedBy(signal: 'SIGTERM' | 'SIGKILL'): ExitEvent {
  return { ...EXIT, how: 'killed', exitCode: null, signal, sender: sender(signal) };
}
