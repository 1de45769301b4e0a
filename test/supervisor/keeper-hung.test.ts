// Lane: patient

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { identify } from '../../src/index.js';
import type { KeeperRun, RunOptions } from '../../src/supervisor/index.js';
import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { KeeperHost, whileBlind } from '../support/keeper';
import { kill } from '../support/kill';
import { until } from '../support/wait';

const KILLED = { code: 'ERR_EXITWATCH_START_FAILED', syscall: 'killed' };
const IN_CGROUP = { cgroup: `${CGROUP2 ?? ''}/exitwatch-test-${process.pid}` };

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** Begins a start that waits before its exec, as for a disk that does not answer, until `release()`. */
async function hang(host: KeeperHost, mode: Partial<RunOptions>, id = 'hangs') {
  const envFile = host.path(`secrets-${id}`);
  execFileSync('mkfifo', [envFile]);
  const started = host.keeper.start({
    id,
    command: 'sleep',
    args: ['1000'],
    envFile,
    ...mode,
  });
  started.catch(() => undefined);
  const writer = await until('the child to read', () => openWriter(envFile));
  const release = () => {
    closeSync(writer);
  };
  return { started, release };
}

/** `null`: nobody has it open for reading. */
function openWriter(fifo: string): number | null {
  try {
    return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}

describe.each([
  ['without a cgroup', it, { cgroup: null }],
  ['in a cgroup', itWithCgroup, IN_CGROUP],
] as const)('a start %s that waits before its exec', (_, itHere, mode) => {
  itHere('is stopped, and has never been a start', async () => {
    await using host = await KeeperHost.open();
    const { started, release } = await hang(host, mode);
    expect(await host.keeper.stop('hangs')).toMatchObject({ isGone: true, wasKilled: false });
    await expect(started).rejects.toMatchObject(KILLED);
    release();
    expect(host.keeper.runs()).toEqual([]);
    expect(host.ended.has('hangs')).toBe(false);
  });

  // Its parent may reap it at any moment while the keeper looks.
  itHere('is stopped fifty times, and is never taken for a start', async () => {
    await using host = await KeeperHost.open();
    for (let i = 0; i < 50; i++) {
      const { started, release } = await hang(host, mode, `hangs-${i}`);
      const stopped = await host.keeper.stop(`hangs-${i}`);
      expect(stopped).toEqual({ id: `hangs-${i}`, isGone: true, wasKilled: false, left: [] });
      await expect(started).rejects.toMatchObject(KILLED);
      release();
    }
    expect(host.ended.size).toBe(0);
  });

  itHere('fails when it is killed while the keeper has no descriptor to look with', async () => {
    await using host = await KeeperHost.open();
    const { started, release } = await hang(host, mode);
    const [{ pid } = { pid: 0 }] = await host.keeper.members('hangs');
    await whileBlind(host.keeperPid, async () => {
      kill(pid, 'SIGKILL');
      await host.keeper.ping();
      await host.keeper.ping();
    });
    await expect(started).rejects.toMatchObject(KILLED);
    release();
  });

  itHere('fails when it is killed while its parent has no descriptor to look with', async () => {
    await using host = await KeeperHost.open();
    const { started, release } = await hang(host, mode);
    const [{ pid } = { pid: 0 }] = await host.keeper.members('hangs');
    await whileBlind(parentOf(pid), async () => {
      kill(pid, 'SIGKILL');
      await sleep(3000); // however long
    });
    await expect(started).rejects.toMatchObject(KILLED);
    release();
  });

  itHere('fails when it is killed, though its pipe closes as by an exec', async () => {
    await using host = await KeeperHost.open();
    const { started, release } = await hang(host, mode);
    const [{ pid } = { pid: 0 }] = await host.keeper.members('hangs');
    kill(pid, 'SIGKILL');
    await expect(started).rejects.toMatchObject(KILLED);
    release();
    await host.keeper.start({ id: 'hangs', command: 'sh', args: ['-c', 'kill -9 $$'], ...mode });
    expect(await host.end('hangs')).toMatchObject({ how: 'killed', signal: 'SIGKILL' });
  });

  itHere('is known as such to the next keeper, and told when it begins', async () => {
    await using host = await KeeperHost.open();
    const { started, release } = await hang(host, mode);
    const { restarts, keeperPid } = host;
    kill(keeperPid, 'SIGKILL');
    await until('another keeper', () => host.restarts > restarts);
    expect(host.keeper.run('hangs')).toMatchObject({ state: 'starting', isLost: true });
    const begun = once(host.keeper, 'started');
    release();
    expect(await begun).toMatchObject([{ id: 'hangs' }]);
    const run = await started;
    expect(run).toMatchObject({ id: 'hangs' });
    kill(run.pid ?? 0, 'SIGKILL');
    await host.end('hangs');
  });

  itHere('has its whole identity once it runs, for those who came before that, too', async () => {
    await using host = await KeeperHost.open();
    const { started, release } = await hang(host, mode);
    await host.reopen();
    expect(host.keeper.run('hangs')).toMatchObject({ state: 'starting' });
    const begun = once(host.keeper, 'started');
    release();
    const [{ pid, identity }] = (await begun) as [KeeperRun];
    expect(identity).toEqual(identify(pid ?? 0));
    expect(host.keeper.run('hangs')?.identity).toEqual(identity);
    await started.catch(() => undefined);
    kill(pid ?? 0, 'SIGKILL');
    await host.end('hangs');
  });

  itHere('does not hold up the next keeper when this one is killed', async () => {
    await using host = await KeeperHost.open();
    const { started, release } = await hang(host, mode);
    const { restarts, keeperPid } = host;
    kill(keeperPid, 'SIGKILL');
    await until('another keeper', () => host.restarts > restarts);
    await host.keeper.start({ id: 'other', command: 'true' });
    await host.end('other');
    release();
    const run = await started;
    expect(run).toMatchObject({ id: 'hangs', isLost: true });
    kill(run.pid ?? 0, 'SIGKILL');
    await host.end('hangs');
  });
});

it('a start that waits before its exec fails under the next keeper when it is killed there, which is recorded', async () => {
  await using host = await KeeperHost.open();
  const { started, release } = await hang(host, { cgroup: null });
  const { restarts, keeperPid } = host;
  const [{ pid } = { pid: 0 }] = await host.keeper.members('hangs');
  kill(keeperPid, 'SIGKILL');
  await until('another keeper', () => host.restarts > restarts);
  kill(pid, 'SIGKILL');
  await until('its failure to be recorded', () =>
    /^F hangs 125 killed /m.test(readFileSync(host.path('keeper', 'runs'), 'latin1')),
  );
  await expect(started).rejects.toMatchObject(KILLED);
  release();
});
