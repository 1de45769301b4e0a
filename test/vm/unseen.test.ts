// Lane: unit

import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ControlFiles } from '../../src/vm/directory/control-files';
import { FileTrust } from '../../src/vm/directory/file-trust';
import { judgeUnseenEnd } from '../../src/vm/directory/unseen-ends';
import { judgeUnseen, readRuns } from '../../src/vm/qemu/unseen-run';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-unseen-'));
  path = join(folder, 'web.events');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const BEGIN_S = Math.floor(Date.now() / 1000) - 1000;
const OFF = { guest: true, reason: 'guest-shutdown' };
const NONE = { pidfile: null, socket: null };

/** `'SHUTDOWN@5'`: five seconds after the beginning; anything else is a line as it is. */
async function runsOf(...texts: string[]) {
  const lines = texts.map((text) => {
    const [event, at] = text.split('@');
    if (at === undefined) return text;
    const timestamp = { seconds: BEGIN_S + Number(at), microseconds: 0 };
    return JSON.stringify({ event, data: event === 'SHUTDOWN' ? OFF : {}, timestamp });
  });
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 });
  const { runs } = await readRuns({ path, trustedUids: null, after: new Date(BEGIN_S * 1000) });
  return runs;
}

const TORN = '{"timestamp": {"seco';

test('a torn line keeps the verdict on its own run from being sure, and on no other run', async () => {
  const shutDown = ['RESUME@1', 'SHUTDOWN@2'];
  const runs = await runsOf(
    ...shutDown,
    'RESUME@11',
    TORN,
    'SHUTDOWN@12',
    'RESUME@21',
    'SHUTDOWN@22',
  );
  const verdicts = runs.map((run) => judgeUnseen('web', run, NONE, null));
  expect(verdicts).toMatchObject([
    { userShutdown: true, certainty: 'sure' },
    { userShutdown: null, certainty: 'one-of' },
    { userShutdown: true, certainty: 'sure' },
  ]);
  expect(verdicts[1]?.candidates).toEqual(
    expect.arrayContaining(['guest-shutdown', 'other-powerdown']),
  );
});

test('of a log that is too long, only the first run that was read may lack events', async () => {
  const filler = 'x'.repeat(70 * 1024 * 1024);
  const runs = await runsOf(filler, 'RESUME@1', 'SHUTDOWN@2', 'RESUME@11', 'SHUTDOWN@12');
  expect(runs.map(({ mayLackEvents }) => mayLackEvents)).toEqual([true, false]);
  expect(await runsOf(filler, 'RESUME@-9', 'SHUTDOWN@-8', 'RESUME@11')).toMatchObject([
    { mayLackEvents: false },
  ]);
});

test('a torn line from before does not count', async () => {
  const runs = await runsOf('RESUME@-9', TORN, 'SHUTDOWN@-8', TORN, 'RESUME@1', 'SHUTDOWN@2');
  expect(runs).toMatchObject([{ mayLackEvents: false }]);
  expect(await runsOf('RESUME@-9', TORN)).toEqual([]);
});

test('a signal that an earlier start obeyed did not end a later one', async () => {
  const log = join(folder, 'web.log');
  writeFileSync(log, 'qemu: terminating on signal 15 from pid 7 (kill)\n', { mode: 0o600 });
  const files: ControlFiles = {
    ...{ name: 'web', qmp: null, pidfile: null, eventLog: path, log, signature: '' },
  };
  const [run] = await runsOf('RESUME@1', 'STOP@2', 'RESUME@3');
  if (run === undefined) throw new Error('there is no run');
  const trust = await FileTrust.of(folder, null, (error) => {
    throw error;
  });
  const judge = () => judgeUnseenEnd('web', { run, hasLeftFiles: true }, files, trust);
  expect(await judge()).toMatchObject({ cause: 'forced-stop' });
  const before = new Date((BEGIN_S - 60) * 1000);
  utimesSync(log, before, before);
  const { cause, evidence } = await judge();
  expect(cause).not.toBe('forced-stop');
  expect(evidence.filter(({ source }) => source === 'log')).toEqual([]);
});
