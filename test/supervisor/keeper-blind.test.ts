// Lane: patient

// A keeper that cannot look, because it has no descriptor left, knows nothing of an end.
import { existsSync, readFileSync } from 'node:fs';

import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { KeeperHost, whileBlind } from '../support/keeper';
import { kill } from '../support/kill';
import { isRunning } from '../support/supervisor';
import { until } from '../support/wait';

/** It has looked at all its runs meanwhile, and told what it saw. */
async function looks(host: KeeperHost, id: string): Promise<void> {
  for (let i = 0; i < 3; i++) await host.keeper.members(id);
}

describe.each([
  ['without a cgroup', it, { cgroup: null }],
  ['in a cgroup', itWithCgroup, { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` }],
] as const)('a keeper without descriptors, of a run %s', (_, itHere, more) => {
  itHere('tells no end that has not happened, though its own keeper has died', async () => {
    await using host = await KeeperHost.open();
    const { pid } = await host.keeper.start({ id: 'web', command: 'sleep', args: ['99'], ...more });
    kill(host.keeperPid, 'SIGKILL');
    await until('the next keeper', () => host.restarts === 1);
    await whileBlind(host.keeperPid, async () => {
      await looks(host, 'web');
      expect(host.keeper.run('web')).toMatchObject({ state: 'running', isLost: true, pid });
    });
    await looks(host, 'web');
    expect([isRunning(pid), host.ended.size, host.empty]).toEqual([true, 0, []]);
    kill(pid, 'SIGKILL');
    await host.end('web');
    await host.untilEmpty('web');
  });

  itHere('does not take for gone what it has left behind', async () => {
    await using host = await KeeperHost.open();
    const left = host.path('left');
    const script = `sleep 99 & echo $! > ${left}; exit 3`;
    await host.keeper.start({ id: 'web', command: 'sh', args: ['-c', script], ...more });
    expect((await host.end('web')).exitCode).toBe(3);
    await whileBlind(host.keeperPid, async () => {
      await looks(host, 'web');
      expect(host.keeper.run('web')).toMatchObject({ state: 'ended', hasMembers: true });
      const stopped = host.keeper.stop('web', { graceMs: 60_000 });
      await expect(stopped).rejects.toMatchObject({ code: 'ERR_EXITWATCH_SYSTEM' });
    });
    expect(existsSync(left) && isRunning(Number(readFileSync(left, 'utf8')))).toBe(true);
    expect(host.empty).toEqual([]);
    expect(await host.keeper.stop('web')).toMatchObject({ isGone: true, wasKilled: false });
  });
});
