// Lane: patient

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';

import { KeeperHost, processesWith } from '../support/keeper';
import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { itAsRoot } from '../support/privilege';
import { program } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const STOPS = 7 * ROUNDS;

// On a busy machine a tree that fights back takes some seconds to stop.
jest.setTimeout(60_000 + STOPS * 10_000);

const IN_CGROUP = { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` };

describe.each([
  ['with cgroups', itWithCgroup, IN_CGROUP],
  ['without cgroups', it, { cgroup: null }],
  ['as an ordinary user, with cgroups', itWithCgroup, { ...IN_CGROUP, user: 'nobody' }],
  ['as an ordinary user, without cgroups', itAsRoot, { cgroup: null, user: 'nobody' }],
] as const)('%s', (_, itHere, more) => {
  itHere(
    `a tree that fights back, stopped ${STOPS} times: nothing left, no stranger signalled`,
    async () => {
      await using host = await KeeperHost.open();
      chmodSync(host.stateDir, 0o755);
      const stranger = spawn(program('mortal'), ['--stranger']);
      // Another run, whose processes are strangers to the one that is stopped.
      await host.keeper.start({
        ...{
          id: 'other',
          command: 'sleep',
          args: ['100000'],
        },
        ...more,
      });
      for (let i = 0; i < STOPS; i++) {
        const [id, token] = [`fighter${i}`, String(process.pid * 1000 + i)];
        const log = host.path(`log${i}`);
        const options = {
          id,
          command: program('fighter'),
          args: [token],
          logs: { stdout: log },
          ...more,
        };
        await host.keeper.start({ ...options, cwd: '/' });
        await until('the tree to grow', () => processesWith(token).length > 8);
        const graceMs = i % 3 === 0 ? 0 : 20;
        expect(await host.keeper.stop(id, { graceMs, confirmMs: 30_000 })).toMatchObject({
          isGone: true,
        });
        expect(processesWith(token)).toEqual([]);
        await host.end(id);
        await host.keeper.forget(id);
      }
      expect(host.keeper.run('other')?.state).toBe('running');
      stranger.stdin.end();
      expect(await once(stranger, 'close')).toEqual([0, null]);
    },
  );
});
