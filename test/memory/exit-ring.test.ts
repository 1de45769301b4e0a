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

/** A recorder whose ring gets what `put` puts into it. */
class FilledRing {
  #end = 0;
  readonly #unread: string[] = [];
  readonly recording = {
    recorder: {
      losses: () => ({ exits: { count: 0, firstMs: 0, lastMs: 0 } }),
      ringEnd: () => this.#end,
      delivered: () => 0,
      ...{ setDelivered: () => undefined, commitRing: () => undefined },
    },
    exits: {
      readRing: (isWanted: (id: string) => boolean) => {
        const read = this.#unread.splice(0).map((id) => {
          return { id, end: ++this.#end, event: isWanted(id) ? ({ id } as ExitEvent) : null };
        });
        if (read.length > 0) this.onRead();
        return read;
      },
    },
  } as unknown as Recording;

  /** What happens once this ring was read, and before the next one is. */
  onRead: () => void = () => undefined;

  put(...ids: string[]): void {
    this.#unread.push(...ids);
  }
}

describe('two recorders have an exit, and it comes once', () => {
  let late: jest.SpyInstance<number, []>;
  let nowMs = 1000;
  const any = () => true;

  beforeEach(() => {
    late = jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
  });
  afterEach(() => {
    late.mockRestore();
  });

  test('if the live stream reports it while an exit before it is not committed', () => {
    const [older, newer] = [new FilledRing(), new FilledRing()];
    const ring = new ExitRing([older.recording, newer.recording], 0);
    for (const each of [older, newer]) each.put('waiting', 'reported');
    expect(ring.missed(any)).toEqual([]);
    expect(ring.onLive({ id: 'reported' } as ExitEvent)).toBe(true);
    ring.commit('reported');
    nowMs += 5000;
    expect(ring.missed(any)).toEqual([{ id: 'waiting', isRepeated: false }]);
  });

  test('if it happens when one was read, and the other one was not', () => {
    const [older, newer] = [new FilledRing(), new FilledRing()];
    const ring = new ExitRing([older.recording, newer.recording], 0);
    older.put('first');
    older.onRead = () => {
      older.onRead = () => undefined;
      older.put('between');
      newer.put('between');
    };
    expect(ring.drain(({ id }) => id === 'first')).toHaveLength(1);
    expect(ring.onLive({ id: 'between' } as ExitEvent)).toBe(true);
    ring.commit('between');
    expect(ring.missed(any)).toEqual([]);
    nowMs += 5000;
    expect(ring.missed(any)).toEqual([]);
  });
});
