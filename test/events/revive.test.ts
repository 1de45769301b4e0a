// Lane: unit

import { isExitJson, reviveExit } from '../../src/events/revive';
import { endOf, killedBy } from '../support/journal';

const parsed = (event: object) => JSON.parse(JSON.stringify(event)) as Record<string, unknown>;

test('an end that was JSON is as it was before', () => {
  const end = endOf(3, killedBy('deploy.sh', 4711, 3));
  expect(reviveExit(parsed(end))).toEqual(end);
});

test('an end of an earlier version gets the places of its cgroup and of its sender’s', () => {
  const json = parsed(endOf(3, killedBy('deploy.sh', 4711, 3)));
  const sender = json['sender'] as Record<string, unknown>;
  sender['cgroup'] = '/system.slice/cron.service';
  for (const name of ['unit', 'container', 'pod', 'machine', 'commandLine']) {
    Reflect.deleteProperty(json, name);
    Reflect.deleteProperty(sender, name);
  }
  expect(reviveExit(json)).toMatchObject({
    ...{ unit: 'web.service', container: null, commandLine: null },
    sender: { unit: 'cron.service', machine: null, commandLine: null },
  });
});

test('an end with a date that is none is no end', () => {
  expect(isExitJson(parsed(endOf(3)))).toBe(true);
  expect(isExitJson({ ...parsed(endOf(3)), exitedAt: 'yesterday' })).toBe(false);
});
