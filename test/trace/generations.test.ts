// Lane: unit

import { Generations, type Seen } from '../../src/trace/generations';
import { SignalFlag } from '../../src/native/abi';
import type { TracedSignal } from '../../src/native/signal-records';
import { senderOf } from '../../src/trace/signal-sender';

import { NOW, signal, taken, TARGET } from '../support/signals';

const TERM = 'SIGTERM';

function seen(by: TracedSignal): Seen {
  const { timeNs, flags, senderPid, senderThread, senderStart } = by;
  const sender = senderOf(by, { pathOf: () => null, commandLine: null, clientsOf: () => null });
  return { timeNs, flags, senderPid, senderThread, senderStart, sender };
}

/** The sender whose signal ended a process that was sent, and took, these signals. */
function killer(...signals: TracedSignal[]): number | string {
  const generations = new Generations();
  for (const each of signals) {
    if ((each.flags & SignalFlag.taken) !== 0) generations.take(each, seen(each));
    else generations.add(each, seen(each));
  }
  const sender = generations.killer(TERM, NOW)?.sender;
  if (sender === undefined) return 'nobody';
  return sender.pid ?? sender.origin;
}

const TRACED = SignalFlag.ptraced;
const by = (senderPid: number, changes: Partial<TracedSignal> = {}) =>
  signal({ senderPid, ...changes });
const traced = (senderPid: number) =>
  by(senderPid, { flags: SignalFlag.group | SignalFlag.senderStack | TRACED });
const toThread = (senderPid: number, thread = TARGET) =>
  by(senderPid, { thread, flags: SignalFlag.senderStack, code: -6 });

describe('the killer of a process without a tracer', () => {
  test('is the sender of the signal that was taken, not of a later one', () => {
    expect(killer(by(8), taken({ senderPid: 8 }), by(9))).toBe(8);
  });

  test('is not the sender of a signal taken after its end, perhaps by another process with its pid', () => {
    const late = taken({ senderPid: 9, timeNs: NOW + 1 });
    expect(killer(by(8), taken({ senderPid: 8, timeNs: NOW }), by(9), late)).toBe(8);
    expect(killer(by(9), late)).toBe('nobody');
  });

  test('is the second sender if the second signal was not pending already, which proves that the first was taken', () => {
    expect(killer(by(8), by(9), taken({ senderPid: 9 }))).toBe(9);
    expect(killer(by(8), by(9), taken({ senderPid: 8 }))).toBe('nobody');
  });

  test('is found by the queue: signals to a thread and to the process are told apart', () => {
    const group = by(8);
    expect(killer(toThread(9), group, taken({ senderPid: 8 }))).toBe(8);
    expect(killer(group, toThread(9), taken({ senderPid: 9, code: -6 }))).toBe(9);
    // No other thread takes what is in a thread's queue.
    expect(killer(toThread(9, 101), taken({ senderPid: 9, code: -6 }))).toBe('nobody');
  });

  test('is found by the queue if the senders are outside its namespace, and their pids look the same', () => {
    const outside = { info: [0, 0, 0, 0], senderPidThere: 0 } as const;
    const end = taken(outside);
    expect(killer(by(8, outside), by(9, outside), end)).toBe(9);
    const queued = (pid: number) => by(pid, { ...outside, signal: 37 });
    const generations = new Generations();
    for (const each of [queued(8), queued(9)]) generations.add(each, seen(each));
    const end37 = taken({ ...outside, signal: 37 });
    generations.take(end37, seen(end37));
    expect(generations.killer('SIGRTMIN+3', NOW)).toBeNull();
  });

  test('is unknown if its signal looks like one that was dropped for lack of room', () => {
    const outside = { info: [0, 0, 0, 0], senderPidThere: 0, signal: 37 } as const;
    const killerOf37 = (others: readonly TracedSignal[]) => {
      const generations = new Generations();
      for (const each of [by(8, outside), ...others, by(9, outside)]) {
        generations.add(each, seen(each));
      }
      const end = taken(outside);
      generations.take(end, seen(end));
      return generations.killer('SIGRTMIN+3', NOW)?.sender.pid ?? 'nobody';
    };
    const many = Array.from({ length: 100 }, (_, i) => by(1000 + i, { signal: 37 }));
    expect(killerOf37(many)).toBe('nobody');
    // Repeated signals take no additional room.
    const repeated = Array.from({ length: 100 }, () => by(1000, { signal: 37 }));
    expect(killerOf37(repeated)).toBe('nobody');
    expect(killer(...repeated, by(8), taken({ senderPid: 8 }))).toBe(8);
    const traced8 = [traced(8), ...Array.from({ length: 100 }, () => traced(9))];
    const end = taken({ senderPid: 8, flags: SignalFlag.taken | TRACED });
    expect(killer(...traced8, end)).toBe(8);
  });

  test('is unknown if two threads take two signals at once, because either may have been first', () => {
    const first = taken({ senderPid: 8 });
    const second = taken({ senderPid: 9, thread: 101 });
    expect(killer(by(8), first, by(9), second)).toBe('nobody');
    expect(killer(by(8), first, by(8), taken({ senderPid: 8, thread: 101 }))).toBe(8);
  });

  test('is unknown if the sender’s pid was reused: the new process is another sender', () => {
    const again = by(8, { senderStart: 1 });
    const first = taken({ senderPid: 8 });
    expect(killer(by(8), first, again, taken({ senderPid: 8, thread: 101 }))).toBe('nobody');
  });

  test('is the kernel if the siginfo is one that only the kernel writes', () => {
    const kernel = by(50, { flags: SignalFlag.privileged | SignalFlag.group });
    expect(killer(by(8), kernel, taken({ code: 0x80, info: [0, 0, 0, 0] }))).toBe('kernel');
    const onBehalf = by(8, { flags: SignalFlag.noInfo | SignalFlag.group });
    expect(killer(onBehalf, taken({ senderPid: 8 }))).toBe('kernel');
    const lost = by(8, { flags: SignalFlag.group | SignalFlag.infoLost });
    expect(killer(lost, taken({ info: [0, 0, 0, 0] }))).toBe(8);
  });

  test('is the same timer even if it has expired more often meanwhile', () => {
    const timer = by(50, { code: -2, flags: SignalFlag.group, info: [0, 0, 1, 0] });
    expect(killer(timer, taken({ code: -2, info: [0, 3, 1, 0] }))).toBe('timer');
  });

  test('is unknown if the signal’s generation was not observed', () => {
    expect(killer(taken({ senderPid: 8 }))).toBe('nobody');
    const generations = new Generations();
    generations.add(by(8), seen(by(8)));
    generations.doubt();
    const end = taken({ senderPid: 8 });
    generations.take(end, seen(end));
    expect(generations.killer(TERM, NOW)).toBeNull();
  });

  test('is the sender of the deadly signal, not of one that was taken before', () => {
    const deadly = by(9, { flags: SignalFlag.group | SignalFlag.deadly });
    expect(killer(deadly)).toBe(9);
    expect(killer(by(8), taken({ senderPid: 8 }), deadly)).toBe('nobody');
  });
});

describe('the killer of a process with a tracer', () => {
  const TRACER = 2;
  const takes = (senderPid: number, changes: Partial<TracedSignal> = {}) =>
    taken({ senderPid, flags: SignalFlag.taken | TRACED, ...changes }, TRACER);

  test('is the sender of the signal that the tracer lets pass', () => {
    expect(killer(traced(8), traced(9), takes(8))).toBe(8);
    expect(killer(traced(8), traced(9), takes(9))).toBe(9);
  });

  test('is the tracer if no one sent the signal that was taken', () => {
    expect(killer(traced(8), takes(TRACER))).toBe(TRACER);
    expect(killer(traced(8), takes(77))).toBe('nobody');
  });

  test('is unknown if the tracer is outside the process’s pid namespace', () => {
    const outside = { info: [0, 0, 0, 0], senderPidThere: 0 } as const;
    expect(killer(takes(0, outside))).toBe('nobody');
    expect(killer(signal({ ...traced(8), ...outside }), takes(0, outside))).toBe('nobody');
  });

  test('is unknown if a tracer may have injected the signal in the parent’s name while it detached', () => {
    const parents = taken({ senderPid: TRACER });
    expect(killer(traced(TRACER), parents)).toBe('nobody');
    expect(killer(by(TRACER), parents)).toBe(TRACER);
  });

  test('is the original sender if a blocked signal is injected, and so sent again in the process’s own name', () => {
    const again = (info: number, flags = 0) =>
      by(TARGET, {
        info: [info, 0, 0, 0],
        flags: SignalFlag.toItself | SignalFlag.senderStack | SignalFlag.group | flags,
      });
    const blocked = TRACED | SignalFlag.blocked;
    expect(killer(traced(8), again(8, blocked), takes(8))).toBe(8);
    expect(killer(again(TRACER, blocked), takes(TRACER))).toBe('nobody');
    // Without a tracer, the process has forged this itself.
    expect(killer(by(8), again(8), taken({ senderPid: 8 }))).toBe('nobody');
    expect(killer(again(TARGET), taken({ senderPid: TARGET }))).toBe(TARGET);
  });

  test('is unknown for a signal at a system call, which the kernel sends for the tracer', () => {
    const atCall = by(TARGET, { flags: SignalFlag.toItself | SignalFlag.privileged | TRACED });
    expect(killer(atCall, takes(0, { code: 0x80, info: [0, 0, 0, 0] }))).toBe('nobody');
  });
});
