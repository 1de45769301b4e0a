// Lane: unit

import type { SignalEvent } from '../../src';
import { DoubtfulSignals } from '../../src/cli/output/doubtful-signals';

const signal = (id: number, i = 0) => ({ id: String(id), pid: i }) as SignalEvent;

test('of a process that is sent many signals the first and the last ones are remembered', () => {
  const doubtful = new DoubtfulSignals();
  for (let i = 0; i < 100_000; i++) doubtful.add(signal(1, i));
  doubtful.add(signal(2));
  const told = doubtful.take('1').map(({ pid }) => pid);
  expect(told).toHaveLength(100);
  expect(told.slice(0, 50)).toEqual(Array.from({ length: 50 }, (_, i) => i));
  expect(told.slice(-50)).toEqual(Array.from({ length: 50 }, (_, i) => 99_950 + i));
  expect(doubtful.skipped).toBe(100_000 - 100);
  expect([doubtful.take('1'), doubtful.take('2')]).toEqual([[], [signal(2)]]);
});

test('the signals to the process that has waited longest make room', () => {
  const doubtful = new DoubtfulSignals();
  for (let id = 0; id <= 10_000; id++) doubtful.add(signal(id));
  expect(doubtful.take('0')).toEqual([]);
  expect(doubtful.take('1')).toHaveLength(1);
  expect(doubtful.skipped).toBe(1);
});
