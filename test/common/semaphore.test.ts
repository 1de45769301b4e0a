// Lane: unit

import { Semaphore } from '../../src/common/semaphore';

test('runs up to its limit at once, starts the rest in order, and frees the place of a failed task', async () => {
  const semaphore = new Semaphore(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const runs = [0, 1, 2, 3].map((number) =>
    semaphore.run(async () => {
      begun.push(number);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (number < 2) throw new Error(`${number} has failed`);
      return number;
    }),
  );
  expect(begun).toEqual([0, 1]);
  ends[0]?.();
  await expect(runs[0]).rejects.toThrow('0 has failed');
  expect(begun).toEqual([0, 1, 2]);
  ends[1]?.();
  await expect(runs[1]).rejects.toThrow('1 has failed');
  expect(begun).toEqual([0, 1, 2, 3]);
  ends[2]?.();
  ends[3]?.();
  expect(await Promise.all(runs.slice(2))).toEqual([2, 3]);
  // Every place is free again.
  expect(await semaphore.run(() => Promise.resolve('again'))).toBe('again');
});
