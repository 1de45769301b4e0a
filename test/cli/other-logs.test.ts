// Lane: unit

import { kernelLinesAmong, unitLine } from '../../src/cli/other-logs';

describe('another log', () => {
  const REAPED = 'sure how: systemd reaped it; who sent a signal is not known';
  const DID = 'sure: systemd did it; who asked for that is not known';

  test.each([
    ['web.service: Main process exited, code=killed, status=9/KILL', REAPED],
    ["web.service: Failed with result 'oom-kill'.", REAPED],
    ['web.service: Deactivated successfully.', REAPED],
    ['web.service: Succeeded.', REAPED], // before systemd 248
    [
      'web.service: A process of this unit has been killed by the OOM killer.',
      'sure: the kernel has counted it',
    ],
    ["web.service: State 'stop-sigterm' timed out. Killing.", DID],
    ['web.service: Killing process 77 (web) with signal SIGKILL.', DID],
    ['Stopping web.service - A web server...', DID],
    ['Stopped web.service - A web server.', null], // older versions also say it before a restart
    ['Started zoom.service - Killed rooms, stopped looms.', null],
    ['Starting oom.service - The broom killed...', null],
    ['web.service: Consumed 3.2s CPU time, 99.4M memory peak.', null],
  ])('says: %s', (message, certainty) => {
    const line = `2026-11-24T03:00:03+0000 host systemd[1]: ${message}`;
    expect(unitLine(line)).toEqual(certainty === null ? null : { line, certainty });
  });

  test.each([
    'traps: my app[701] trap invalid opcode ip:55d0 sp:7ffe error:0 in app[55d0+1000]',
    'traps: my app[701] general protection fault ip:55d0 sp:7ffe error:0 in libc.so.6',
    'my app[701]: segfault at 0 ip 000055d0 sp 00007ffe error 4 in app[55d0+1000]',
  ])('of the kernel says: %s', (message) => {
    const lines = [`2026-11-24T03:00:03+0000 host kernel: ${message}`];
    for (const subject of [{ name: 'my app' }, { name: 'my *' }, { pid: 701 }]) {
      expect(kernelLinesAmong(lines, subject)).toHaveLength(1);
    }
    for (const subject of [{ name: 'app' }, { pid: 70 }]) {
      expect(kernelLinesAmong(lines, subject)).toEqual([]);
    }
  });

  test('tells a full cgroup from a full machine', () => {
    const oom = (what: string) =>
      `2026-11-24T03:00:03+0000 host kernel: ${what}: Killed process 77 (web) total-vm:9kB`;
    const lines = ['Memory cgroup out of memory', 'Out of memory'].map(oom);
    expect(kernelLinesAmong(lines, { name: 'web' })).toEqual([
      expect.objectContaining({
        line: lines[0],
        certainty: 'sure: its cgroup reached its limit of memory, and the kernel killed it',
      }),
      expect.objectContaining({
        line: lines[1],
        certainty: 'sure: the kernel ran out of memory and killed it',
      }),
    ]);
    expect(kernelLinesAmong(lines, { pid: 7 })).toEqual([]);
    for (const subject of [{ name: 'w*' }, { pid: 77 }]) {
      expect(kernelLinesAmong(lines, subject)).toHaveLength(2);
    }
  });
});
