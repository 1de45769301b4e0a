// Lane: unit

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { FileTrust } from '../../src/vm/directory/file-trust';
import { laterStart } from '../../src/vm/directory/later-start';
import type { TrackingContext } from '../../src/vm/directory/tracking-context';

const BEGIN_S = Math.floor(Date.now() / 1000) - 1000;
const at = (seconds: number) => new Date((BEGIN_S + seconds) * 1000);

/** Whether its events show a later start, if those until then are accounted for. */
async function isSuperseded(until: number, events: readonly [string, number][]) {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-later-'));
  try {
    const lines = events.map(([event, seconds]) => {
      const timestamp = { seconds: BEGIN_S + seconds, microseconds: 0 };
      const data = event === 'VSERPORT_CHANGE' ? { id: 'agent', open: true } : {};
      return JSON.stringify({ event, data, timestamp });
    });
    writeFileSync(join(folder, 'web.events'), `${lines.join('\n')}\n`, { mode: 0o600 });
    const known = { name: 'web', identity: null, judgedUntil: at(until) };
    const context = {
      ...{ path: folder, since: at(0), wasDelivered: () => false },
      known: () => known,
    } as unknown as TrackingContext;
    const trust = await FileTrust.of(folder, null, (error) => {
      throw error;
    });
    return await laterStart('web', context, trust);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each<[string, number, [string, number][], boolean]>([
  [
    'began after the end',
    2,
    [
      ['RESUME', 1],
      ['SHUTDOWN', 2],
      ['RESUME', 9],
    ],
    true,
  ],
  [
    'is not there',
    2,
    [
      ['RESUME', 1],
      ['SHUTDOWN', 2],
    ],
    false,
  ],
  // What is known of an end may be older than the last events of its run.
  [
    'is the end of a pause',
    1,
    [
      ['RESUME', 1],
      ['STOP', 5],
      ['RESUME', 6],
    ],
    false,
  ],
  [
    'is an agent that was opened again',
    3,
    [
      ['RESUME', 1],
      ['RESET', 3],
      ['VSERPORT_CHANGE', 4],
    ],
    false,
  ],
])('a later start %s', async (_, until, events, expected) => {
  expect(await isSuperseded(until, events)).toBe(expected);
});
