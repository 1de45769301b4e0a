// Lane: unit

import type { ExitEvent } from '../../src';
import { OwnFamily } from '../../src/cli/hooks/own-family';
import { unknownExit } from '../../src/events/unknown-exit';

const HOOK = 100;
const [CHILD, GRANDCHILD, STRANGER] = [101, 102, 200];

const exit = (pid: number, parentPid: number): ExitEvent => ({
  ...unknownExit(
    {
      ...{ id: `x-${pid}-1`, pid, startedAt: null, exitedAt: new Date(), uncertaintyMs: 0 },
      source: 'connector',
    },
    'lost',
  ),
  parentPid,
});

/** What each process looks like: its parent; being released, or gone: `null`. */
function family(table: Record<number, number | 'hidden' | null>): OwnFamily {
  const own = new OwnFamily((pid) => {
    const found = table[pid] ?? null;
    return typeof found === 'number' ? { parentPid: found } : found;
  });
  own.add(HOOK, new Date());
  return own;
}

test('a descendant of a hook is recognized although its parent is just being released', async () => {
  const own = family({ [HOOK]: 1, [CHILD]: null });
  const event = exit(GRANDCHILD, CHILD);
  own.learn(event);
  const isOwn = own.has(event);
  await new Promise(setImmediate);
  own.learn(exit(CHILD, HOOK));
  expect(await isOwn).toBe(true);
});

test('a process whose parent is alive, or hidden, is judged at once', async () => {
  expect(await family({ [CHILD]: HOOK }).has(exit(GRANDCHILD, CHILD))).toBe(true);
  expect(await family({ [CHILD]: STRANGER, [STRANGER]: 1 }).has(exit(GRANDCHILD, CHILD))).toBe(
    false,
  );
  expect(await family({ [STRANGER]: 'hidden' }).has(exit(GRANDCHILD, STRANGER))).toBe(false);
});

test('a process whose parent’s exit never comes is no descendant', async () => {
  const exitedAt = new Date(Date.now() - 1900); // it waits until 2 s after the exit
  expect(await family({}).has({ ...exit(GRANDCHILD, STRANGER), exitedAt })).toBe(false);
});

test('a process that gets the pid of a hook of before is a stranger, and so are its children', async () => {
  const own = family({ [HOOK]: 1 });
  own.end(HOOK);
  const later = { exitedAt: new Date(Date.now() + 5000) };
  expect(await own.has(exit(CHILD, HOOK))).toBe(true);
  expect(await own.has({ ...exit(HOOK, 1), ...later })).toBe(false);
  expect(await own.has({ ...exit(CHILD, HOOK), ...later })).toBe(false);
});

test('a process whose parent nobody knows may be one that a hook started, while it runs', () => {
  const own = family({});
  const orphan = { ...exit(CHILD, 0), parentPid: null };
  expect(own.mayHave(orphan)).toBe(true);
  expect(own.mayHave({ ...orphan, startedAt: new Date(Date.now() - 60_000) })).toBe(false);
  own.end(HOOK);
  expect(own.mayHave({ ...orphan, exitedAt: new Date(Date.now() + 5000) })).toBe(false);
  expect(family({}).mayHave(exit(CHILD, STRANGER))).toBe(false);
});
