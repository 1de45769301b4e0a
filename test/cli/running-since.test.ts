// Lane: unit

import { serviceRunIn } from '../../src/cli/running-since';

const CGROUP = '/system.slice/web.service';

/** What `systemctl show` says. */
const shown = (more: Record<string, string> = {}) =>
  Object.entries({
    ...{ ActiveState: 'active', SubState: 'running', ControlGroup: CGROUP },
    InactiveExitTimestamp: 'Fri 2026-11-27 12:00:00 UTC',
    InactiveExitTimestampMonotonic: '5000000',
    ExecMainStartTimestamp: 'Fri 2026-11-27 12:00:30 UTC',
    ExecMainStartTimestampMonotonic: '35000000',
    ...more,
  })
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

const at = (time: string) => new Date(`2026-11-27T${time}Z`);
const BEGAN = { monotonicMs: 5000, wallMs: at('12:00:00').getTime() };
const MAIN = { monotonicMs: 35_000, wallMs: at('12:00:30').getTime() };

test.each([
  ['it waited for its restart, and then began', {}, { at: at('12:00:30'), began: BEGAN }],
  [
    'what prepares it runs',
    {
      ActiveState: 'activating',
      SubState: 'start-pre',
      ExecMainStartTimestampMonotonic: '4000000',
    },
    { at: at('12:00:00'), began: BEGAN },
  ],
  ['it is never inactive', { RestartMode: 'direct' }, { at: at('12:00:30'), began: MAIN }],
  ['it is never inactive, and begins', { RestartMode: 'direct', ActiveState: 'activating' }, null],
  ['it waits for its restart', { ActiveState: 'activating', SubState: 'auto-restart' }, null],
  ['it has ended', { ActiveState: 'active', SubState: 'exited' }, null],
  ['it has failed', { ActiveState: 'failed', SubState: 'failed' }, null],
  ['it is one of a user', { ControlGroup: '/user.slice/web.service' }, null],
  ['there is none', { ControlGroup: '' }, null],
])('the run of a service, if %s', (_, more, expected) => {
  expect(serviceRunIn(shown(more), `${CGROUP}/worker`)).toEqual(expected);
});
