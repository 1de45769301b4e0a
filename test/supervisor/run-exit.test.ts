// Lane: unit

import type { ExitEvent } from '../../src';
import { joinExit } from '../../src/supervisor/keeper/run-exit';

import { endOf } from '../support/journal';

/** Milliseconds after the end. */
const at = (ms: number) => new Date(endOf(0).exitedAt.getTime() + ms);
const by = (source: ExitEvent['source'], ms: number, more: Partial<ExitEvent> = {}) =>
  endOf(0, { source, exitedAt: at(ms), exitedNs: null, ...more });

test.each<[string, ExitEvent, ExitEvent, number, number]>([
  [
    'the keeper, if it heard of it first',
    by('keeper', 3),
    by('pidfd', 8000, { uncertaintyMs: 8100 }),
    3,
    103,
  ],
  [
    'the monitor, if that heard of it first',
    by('keeper', 9),
    by('pidfd', 2, { uncertaintyMs: 5 }),
    2,
    5,
  ],
  ['the kernel', by('keeper', 3), by('connector', 4, { exitedNs: 1 }), 4, 0],
])('when a run ended is told by %s', (_, kept, seen, ms, uncertaintyMs) => {
  const joined = joinExit(kept, seen);
  expect(joined).toMatchObject({ exitedAt: at(ms), uncertaintyMs, source: 'keeper' });
});
