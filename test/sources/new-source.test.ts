// Lane: unit

import { ExitMonitor, probe, type SourceName } from '../../src';
import { parseSource } from '../../src/cli/args/source-option';
import { describeWatch } from '../../src/cli/output/watch-opening';
import { registerSource } from '../../src/sources/registry';

import { NULL } from '../support/null-source/null-source';

const { name } = NULL;

let takeAway: () => void;
beforeEach(() => {
  takeAway = registerSource(NULL);
});
afterEach(() => {
  takeAway();
});

test('a source that is added to the registry serves a monitor', async () => {
  await using monitor = new ExitMonitor({ source: name });
  using watch = monitor.watch(process.ppid);
  expect(watch.hasPidfd).toBe(false);
  expect(await monitor.start()).toMatchObject({ source: 'null', scope: 'watched', filter: null });
  expect(monitor.stats()).toMatchObject({ source: 'null', watches: 1, healthy: true });
});

test('a feature that the source lacks is refused in its name', () => {
  expect(() => new ExitMonitor({ source: name, scope: 'all' })).toThrow(
    "nothing reports only watched processes; use another source for scope 'all'",
  );
  expect(() => new ExitMonitor({ source: name, trace: 'on' })).toThrow(
    "nothing does not report signals; use another source for trace 'on'",
  );
});

test('probe() tries the source, and never chooses a source without a fall-back', async () => {
  const tried = jest.spyOn(NULL, 'probe');
  const { sources } = await probe();
  expect(tried).toHaveBeenCalledTimes(1);
  expect(Object.values(sources)).not.toContain('null');
});

test('the command line accepts the source, and says what it does not report', async () => {
  expect(parseSource('null')).toBe('null');
  await using monitor = new ExitMonitor({ source: name });
  const line = describeWatch(await monitor.start(), [1]);
  expect(line).toContain('watching pid 1 (null');
  expect(line).toContain('because --source null was requested');
});

test('an unknown source is refused with the list of known ones', () => {
  takeAway();
  takeAway = () => undefined;
  const source = 'null' as SourceName;
  expect(() => new ExitMonitor({ source })).toThrow(
    'source must be "auto" or "connector" or "pidfd" or "poll"',
  );
  expect(() => parseSource('null')).toThrow(
    '--source must be auto, connector, pidfd or poll, not "null"',
  );
});
