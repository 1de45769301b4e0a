// Lane: patient

// What a question reads: the indexes, and not what they rule out.
import { chmodSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { JournalWriter } from '../../src/journal';
import { giveBack } from '../../src/journal/block-cache';
import { indexName, packedName } from '../../src/journal/segment-files';

import { call } from '../support/command';
import { endOf, filesIn, Folder, found, killedBy, range } from '../support/journal';
import { until } from '../support/wait';

const ID = '3f2a9c1b04de'.padEnd(64, '0');
const OTHER = '3f2b'.padEnd(64, '0');
/** Has that one in it. */
const OUTER = 'abcd'.padEnd(64, '0');

const SEGMENTS = [1, 51, 101];

/** Three compressed segments of 50 ends, the second one with something rare, and one that is written to. */
async function write(dir: string): Promise<void> {
  await using journal = new JournalWriter({ dir, segmentBytes: 4096 });
  const rare = { name: 'rare', program: 'rare', cgroup: '/x.slice/y.service', pid: 4 };
  const docker = (id: string) => ({ container: { runtime: 'docker', id, name: null } }) as const;
  for (const i of range(0, 150)) {
    if (i === 70) journal.append(endOf(i, { ...rare, ...docker(ID), ...killedBy('boss', 77, i) }));
    else journal.append(endOf(i, i === 20 ? { cgroup: `/docker/${OUTER}/docker/${OTHER}` } : {}));
    if (i % 50 === 49) await journal.flush();
  }
  await until('the segments to be compressed', async () => {
    await journal.flush();
    return filesIn(dir).filter((name) => name.endsWith('.gz')).length === SEGMENTS.length;
  });
}

/** Whoever opens these segments fails: others could have written there. */
function forbid(dir: string, segments: readonly number[]): void {
  for (const first of segments) chmodSync(join(dir, packedName(first)), 0o666);
}

describe('what no segment has is known without opening one', () => {
  const folder = new Folder();
  const dir = folder.journal;

  beforeAll(async () => {
    await write(dir);
    forbid(dir, SEGMENTS);
    // Nor is more read of an index than its first two lines.
    for (const first of SEGMENTS) {
      const path = join(dir, indexName(first));
      const [head = '', terms = ''] = readFileSync(path, 'utf8').split('\n', 2);
      expect(statSync(path).size).toBeGreaterThan(head.length + terms.length + 2);
      truncateSync(path, head.length + terms.length + 2);
    }
  });

  afterAll(() => {
    folder[Symbol.dispose]();
  });

  test.each([
    [{ name: 'zzyzx' }],
    [{ unit: 'zzyzx.service' }],
    [{ container: 'zzyzx' }],
    [{ container: 'deadbeef' }],
    [{ container: 'deadbeef'.repeat(8) }],
    [{ killedBy: 'zzyzx' }],
    [{ name: 'sh', unit: 'zzyzx.service' }],
    [{ name: 'zzyzx', pid: 1000 }],
  ])('%j', async (query) => {
    expect(await found({ dir, ...query })).toEqual([]);
  });

  test('but what one may have is looked for there', async () => {
    await expect(found({ dir, name: 'sh' })).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_JOURNAL',
    });
  });

  test('why answers the same', async () => {
    const { code, stderr } = await call('why', 'zzyzx', '--state-dir', folder.path);
    expect({ code, line: stderr.split('\n', 1)[0] }).toEqual({
      ...{ code: 127, line: 'exitwatch: the journal has no end of "zzyzx"' },
    });
  });
});

test.each([
  [{ name: 'rare' }],
  [{ unit: 'y.service' }],
  [{ container: '3f2a' }],
  [{ container: '3f2a9c1' }],
  [{ container: ID }],
  [{ killedBy: 'boss' }],
  [{ name: 'rare', pid: 4 }],
])('of %j, only the segment is opened that has it', async (query) => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir);
  forbid(dir, [1, 101]);
  expect(await found({ dir, ...query })).toEqual([71]);
});

test('a container is found by the id of one around it, if the index does not lack that', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir);
  // Until version 3, an index had the innermost one only.
  const path = join(dir, indexName(1));
  const [head = '', , ...blocks] = readFileSync(path, 'utf8').split('\n');
  const terms = Buffer.alloc(16_384).toString('base64');
  const earlier = [head.replace('"version":4', '"version":3'), JSON.stringify({ terms })];
  forbid(dir, [51, 101]);
  for (const container of [OUTER, OUTER.slice(0, 5)]) {
    expect(await found({ dir, container })).toEqual([21]);
  }
  writeFileSync(path, [...earlier, ...blocks].join('\n'));
  expect(await found({ dir, container: OUTER })).toEqual([21]);
});

test('with an index of an earlier version, the whole segment is read', async () => {
  using folder = new Folder();
  const dir = folder.journal;
  await write(dir);
  for (const first of SEGMENTS) {
    const path = join(dir, indexName(first));
    const [head = '', , ...blocks] = readFileSync(path, 'utf8').split('\n');
    const earlier = head.replace('"version":4', '"version":2').replace(',"keeps":null', '');
    writeFileSync(path, [earlier, ...blocks].join('\n'));
  }
  expect(await found({ dir, container: '3f2a9' })).toEqual([71]);
  expect(await found({ dir })).toEqual(range(1, 151));
  // Its times are known all the same.
  forbid(dir, [1, 51]);
  expect(await found({ dir, since: endOf(101).exitedAt })).toEqual(range(102, 151));
});

test('memory is given back at once, unless it is small or shared', () => {
  const own = Buffer.alloc(256 * 1024, 'x');
  giveBack(own);
  expect(own).toHaveLength(0);
  const small = Buffer.from('small');
  giveBack(small);
  expect(small.toString()).toBe('small');
  const shared = Buffer.from(new SharedArrayBuffer(256 * 1024));
  giveBack(shared);
  expect(shared).toHaveLength(256 * 1024);
});
