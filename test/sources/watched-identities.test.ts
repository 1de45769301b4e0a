// Lane: unit

import type { ProcessIdentity } from '../../src';
import { bootPrefix, identityId } from '../../src/identity/process-identity';
import { WatchedIdentities } from '../../src/sources/watched-identities';

const BOOT = '23c4b147-d22c-4174-bd89-5a62df4d78ae';

/** One of several processes that had pid 700. */
function owner(inode: number | null, startTicks: number): ProcessIdentity {
  const id = identityId(bootPrefix(BOOT, null), 700, inode, startTicks, 0);
  return { id, pid: 700, startTicks, bootId: BOOT, inode, pidNamespace: null };
}

test('of two watched processes that had the same pid, the end of one leaves the other', () => {
  const [first, second] = [owner(11, 5000), owner(12, 5000)];
  const watched = new WatchedIdentities();
  watched.add(first);
  watched.add(second);
  watched.delete(first);
  expect(watched.of({ pid: 700, startTicks: 5000, inode: 11 })).toBeUndefined();
  expect(watched.of({ pid: 700, startTicks: 5000, inode: 12 })).toBe(second);
  watched.delete(second);
  expect(watched.has(700)).toBe(false);
  expect(watched.size).toBe(0);
});

test('if one side does not know the inode, the start time decides', () => {
  const made = owner(null, 5000);
  const watched = new WatchedIdentities();
  watched.add(made);
  expect(watched.of({ pid: 700, startTicks: 5000, inode: 11 })).toBe(made);
  expect(watched.of({ pid: 700, startTicks: 5001, inode: 11 })).toBeUndefined();
});
