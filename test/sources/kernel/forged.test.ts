// Lane: patient

import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

import { ExitMonitor } from '../../../src';

import { exitOf } from '../../support/ends';
import { EventLog } from '../../support/event-log';
import { describeForEachFilter } from '../../support/filters';
import { itAsRoot } from '../../support/privilege';
import { LineProcess, program, run } from '../../support/programs';

const NETLINK_CONNECTOR = '11';
const FORGED_EXIT_CODE = 42;

/** The netlink ports of this process's connector sockets, from /proc/net/netlink. */
function connectorPorts(): string[] {
  const inodes = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1] ?? [];
    } catch {
      return []; // the descriptor of this listing itself
    }
  });
  return readFileSync('/proc/net/netlink', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((row) => row[1] === NETLINK_CONNECTOR && inodes.includes(row.at(-1) ?? ''))
    .map((row) => row[2] ?? '');
}

describeForEachFilter(() => {
  describe('an exit forged by another root process', () => {
    itAsRoot('sent to the group is counted and not delivered', async () => {
      await using monitor = new ExitMonitor({ scope: 'all' });
      const log = new EventLog(monitor);
      await monitor.start();
      const victim = new LineProcess('sleep', ['1000']);
      const watch = monitor.watch(victim.pid);

      const { stdout } = await run(program('forge'), [String(victim.pid), 'multicast']);
      expect(stdout.trim().split(/\s+/)).toEqual(['sent', 'sent', 'sent', 'sent']);
      victim.child.kill('SIGTERM');

      expect(await exitOf(watch)).toMatchObject({
        how: 'killed',
        signal: 'SIGTERM',
        lossless: true,
      });
      expect(log.of(victim.pid)).toHaveLength(1);
      // Two complete datagrams and two that are shorter than the kernel's.
      expect(monitor.stats().rejected).toBeGreaterThanOrEqual(4);
    });

    itAsRoot('sent to the socket is refused at the sender', async () => {
      await using monitor = new ExitMonitor({ scope: 'all' });
      const log = new EventLog(monitor);
      await monitor.start();
      const [port] = connectorPorts();
      expect(port).toBeDefined();
      const victim = new LineProcess('sleep', ['1000']);
      const watch = monitor.watch(victim.pid);

      const { stdout } = await run(program('forge'), [String(victim.pid), 'unicast', port ?? '']);
      expect(stdout).toBe('refused Connection refused\n'.repeat(4));
      victim.child.kill('SIGTERM');

      expect(await exitOf(watch)).toMatchObject({ how: 'killed', signal: 'SIGTERM' });
      expect(log.of(victim.pid)).not.toContainEqual(
        expect.objectContaining({ exitCode: FORGED_EXIT_CODE }),
      );
    });
  });
});
