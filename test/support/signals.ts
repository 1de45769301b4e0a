import type { End } from '../../src/native/kernel-records';
import { SignalFlag } from '../../src/native/abi';
import type { TracedSignal } from '../../src/native/signal-records';

export const SECOND = 1e9;
export const HOUR = 3600 * SECOND;
export const NOW = 10 * HOUR;
export const SIGTERM = 15;

/** The process that receives the signals, and its first thread. */
export const TARGET = 100;

/** A SIGTERM by kill(2), sent a moment ago. */
export function signal(changes: Partial<TracedSignal> = {}): TracedSignal {
  const { senderPid = 7 } = changes;
  return {
    inode: 1001,
    startTicks: 500,
    pid: TARGET,
    name: 'target',
    thread: TARGET,
    signal: SIGTERM,
    timeNs: NOW,
    sentAtMs: NOW / 1e6,
    code: 0,
    info: [senderPid, 0, 0, 0],
    flags: SignalFlag.group | SignalFlag.senderStack,
    senderPid,
    senderThread: senderPid,
    senderStart: 1000 + senderPid,
    senderPidThere: senderPid,
    senderName: 'sender',
    senderProgram: null,
    senderUid: 0,
    senderCgroup: 0,
    ancestors: [],
    senderCommandLine: 0,
    ...changes,
  };
}

/** A thread takes a signal that this process sent by kill(2). The parent or tracer has pid 2. */
export function taken(
  { senderPid = 7, ...changes }: Partial<TracedSignal> = {},
  parent = 2,
): TracedSignal {
  return signal({
    flags: SignalFlag.taken,
    info: [senderPid, 0, 0, 0],
    senderPid: parent,
    senderName: 'parent',
    ...changes,
  });
}

export function end(changes: Partial<End> = {}): End {
  return { pid: TARGET, inode: 1001, startTicks: 500, timeNs: NOW, signal: null, ...changes };
}
