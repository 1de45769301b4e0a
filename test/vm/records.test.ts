// Lane: unit

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify, type SignalSender } from '../../src';
import { classifyStop, readVmRecord } from '../../src/vm';
import { StateDirectory } from '../../src/vm/daemon/state-directory';
import { VmRecords } from '../../src/vm/daemon/vm-records';

import { EXIT, killedBy, NOW, sender } from './evidence';

let folder: string;
let state: StateDirectory;
let records: VmRecords;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-records-'));
  state = await StateDirectory.open(folder);
  records = new VmRecords(state, (error) => {
    throw error;
  });
});

afterEach(async () => {
  await state.close();
  rmSync(folder, { recursive: true });
});

const start = {
  ...{ name: 'web', identity: identify(process.pid), uid: null, eventLog: null, command: null },
};

const client = { pid: 8, name: 'virsh', uid: 0, commandLine: null, startedAt: NOW, endedAt: NOW };
const likely = { ...sender('SIGKILL'), likelyClients: [client] } as SignalSender;
const exit = { ...killedBy('SIGKILL'), signalsReceived: [likely] };

async function end() {
  await records.found(start);
  const verdict = classifyStop({
    ...{ name: 'web', exit, events: [], eventsComplete: true },
    ...{ eventsUnbroken: true, initialStatus: 'running', ready: true, mayLinger: false },
    ...{ obeyed: null, hasLog: false, leftovers: { pidfile: null, socket: null }, intents: [] },
  });
  return records.ended(start, verdict, { firstWordAt: null, until: new Date() });
}

test('an end whose hook was not called before the daemon closed is not forgotten by a later write', async () => {
  const stored = await end();
  await records.delivered(stored, () => true);
  await records.found(start);
  const record = await readVmRecord(folder, 'web');
  expect(record?.undelivered).toMatchObject([{ id: stored.id }]);
  await records.delivered(stored, () => false);
  expect((await readVmRecord(folder, 'web'))?.undelivered).toEqual([]);
});

test('all dates of an end are dates again when its record is read', async () => {
  const { stop } = await end();
  const record = await readVmRecord(folder, 'web');
  expect(record?.lastStop).toEqual(stop);
  expect(record?.lastStop?.exit?.tracedSince).toEqual(EXIT.tracedSince);
});
