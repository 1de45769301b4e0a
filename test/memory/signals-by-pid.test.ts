// Lane: unit

import { SignalsByPid } from '../../src/memory/signals-by-pid';
import { SignalFlag } from '../../src/native/abi';
import type { TracedSignal } from '../../src/native/signal-records';

import { end, signal, TARGET } from '../support/signals';

const SIGUSR1 = 10;
const EARLIER = { inode: 999, startTicks: 400 };

/** Who sent what is left of these signals after two minutes, and after an hour. */
function leftOf(signals: Partial<TracedSignal>[], ended?: Parameters<typeof end>[0]) {
  const kept = new SignalsByPid();
  signals.forEach((changes, at) => {
    kept.add(signal({ senderPid: at + 1, ...changes }), at);
  });
  if (ended !== undefined) kept.end(end(ended));
  kept.letGo(1000, -1);
  const senders = () => kept.of(TARGET).map(({ senderPid }) => senderPid);
  const afterMinutes = senders();
  kept.letGo(10_000, 1000);
  return [afterMinutes, senders()];
}

test.each<[string, Partial<TracedSignal>[], Parameters<typeof end>[0], number[], number[]]>([
  ['the first and the last SIGTERM', [{}, {}, {}], undefined, [1, 3], [1, 3]],
  [
    'each kind of request',
    [{}, { signal: 1 }, { signal: 2 }, { signal: 3 }],
    undefined,
    [1, 2, 3, 4],
    [1, 2, 3, 4],
  ],
  ['no other signal', [{ signal: SIGUSR1 }, {}], undefined, [2], [2]],
  [
    'what is blocked for an hour',
    [{ signal: SIGUSR1, flags: SignalFlag.blocked }],
    undefined,
    [1],
    [],
  ],
  ['nothing that it sent itself', [{ senderPid: TARGET }], undefined, [], []],
  ['nothing that it ignored', [{ flags: SignalFlag.ignored }], undefined, [], []],
  ['nothing of a process that has ended', [{}, {}], {}, [], []],
  ['nothing of an earlier process with the pid', [EARLIER, {}], undefined, [2], [2]],
  [
    'what a living process was sent after another with its pid has ended',
    [EARLIER, {}],
    EARLIER,
    [2],
    [2],
  ],
])('keeps %s', (_, signals, ended, afterMinutes, afterHours) => {
  expect(leftOf(signals, ended)).toEqual([afterMinutes, afterHours]);
});
