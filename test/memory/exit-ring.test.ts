// Lane: unit

import type { ExitEvent } from '../../src';
import { ExitRing, type Recording } from '../../src/memory/exit-ring';

/** A recorder whose ring was full: so many exits did not fit. */
function full(count: number): Recording {
  const recorder = {
    losses: () => ({ exits: { count, firstMs: 1, lastMs: 2 } }),
    ringEnd: () => 0,
    delivered: () => 0,
    setDelivered: () => undefined,
  };
  return { recorder, exits: { readRing: () => [] } } as unknown as Recording;
}

test('exits that did not fit are lost only if the live stream, which may delay them, has not told them', () => {
  const lossOf = (maxDelayMs: number, delayMs: number) => {
    const ring = new ExitRing([full(3)], maxDelayMs);
    for (let ms = 0; ring.isComparing(); ms += 100) {
      ring.missed(() => true);
      if (ms === delayMs) ['a', 'b'].forEach((id) => ring.onLive({ id } as ExitEvent));
      const loss = ring.lossBeforeLive();
      if (loss !== null) return loss.lost;
    }
    return null;
  };
  expect(lossOf(0, 100)).toBe(1);
  expect(lossOf(10_000, 10_000)).toBe(1);
  expect(lossOf(0, 10_000)).toBe(3);
});
