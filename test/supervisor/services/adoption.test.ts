// Lane: patient

import {
  appendFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';

import type { ProcessIdentity } from '../../../src/index';
import { bootPrefix, identityId, identityOf } from '../../../src/identity/process-identity';
import { Keeper } from '../../../src/supervisor/index';
import { kill } from '../../support/kill';
import { mortal, release } from '../../support/mortal';
import { isRunning, shell, sleeper, SupervisorHost, textOf } from '../../support/supervisor';
import { until } from '../../support/wait';

const EARLIER = '11111111-2222-3333-4444-555555555555';

/** Does something with the keeper's runs while there is no supervisor. */
async function withKeeper(host: SupervisorHost, work: (keeper: Keeper) => Promise<unknown>) {
  const keeper = new Keeper({ stateDir: host.stateDir });
  await keeper.open();
  await work(keeper);
  await keeper.close();
}

/** A run ends, and its keeper forgets it. */
async function endRun(host: SupervisorHost, run: string | null, isForgotten = true) {
  await withKeeper(host, async (keeper) => {
    await keeper.stop(run ?? '', { signal: 'SIGKILL' });
    if (isForgotten) await keeper.forget(run ?? '');
  });
}

describe('a supervisor that comes back', () => {
  it('CS-17 CS-18 CS-19 adopts what runs, and restarts it when it dies', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid, run } = await host.phase('web', 'running');
    expect(await host.reopen()).toMatchObject({ adopted: ['web'], orphans: [] });
    expect(await host.event('adopted')).toMatchObject({ service: 'web', run, pid });
    expect(host.status('web')).toMatchObject({ phase: 'running', pid, run });
    kill(pid, 'SIGKILL');
    await host.event('started', 2);
    await host.supervisor.service('web').stop();
    expect(host.status('web').phase).toBe('stopped');
  });

  it('CS-18 has nothing of a service that never started', async () => {
    await using host = await SupervisorHost.open();
    expect(host.supervisor.services()).toEqual([]);
    expect(await host.reopen()).toMatchObject({ adopted: [], orphans: [] });
  });

  it('CS-19 SV-04 stops what it has adopted, also by force, with its hooks', async () => {
    await using host = await SupervisorHost.open();
    const log = host.path('log');
    const control = { command: 'sh', args: ['-c', `echo control > ${log}`] };
    const script = `trap '' TERM; while :; do sleep 0.05; done`;
    await host.apply(shell('web', script, { stop: { control, graceMs: 1 } }));
    const { pid } = await host.phase('web', 'running');
    await host.reopen();
    await host.supervisor.service('web').stop();
    expect(isRunning(pid)).toBe(false);
    expect(readFileSync(log, 'utf8')).toBe('control\n');
    expect(host.of('exit')).toHaveLength(1);
  });

  it('SV-02 CS-20 starts again what has died in the meantime, and knows how it ended', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'), sleeper('other'));
    const { pid } = await host.phase('web', 'running');
    const { pid: other } = await host.phase('other', 'running');
    await host.reopen(async () => {
      kill(pid, 'SIGQUIT');
      await until('its death', () => !isRunning(pid));
    });
    expect(await host.event('exit')).toMatchObject({ pid, signal: 'SIGQUIT', isRepeated: true });
    await host.event('started', 3);
    expect(host.status('web').phase).toBe('running');
    expect(host.status('other').pid).toBe(other);
  });

  it('CS-20 a missing folder is no error, another version is one, and changes nothing', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const before = readFileSync(host.path('services', 'web.json'), 'utf8');
    const changed = before.replaceAll('"version":1', '"version":99');
    const reopening = host.reopen(() => {
      writeFileSync(host.path('services', 'web.json'), changed);
    });
    await expect(reopening).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_STATE_DIR',
      message: expect.stringContaining('version 99') as string,
    });
    expect(readFileSync(host.path('services', 'web.json'), 'utf8')).toBe(changed);
    expect(isRunning(pid)).toBe(true);
    await host.reopen(() => {
      writeFileSync(host.path('services', 'web.json'), before);
    });
    expect(host.status('web').pid).toBe(pid);
  });

  it('goes on with what was stored last, but for what a crash has torn', async () => {
    await using host = await SupervisorHost.open();
    const file = host.path('services', 'web.json');
    const linesOf = () => readFileSync(file, 'utf8').split('\n').slice(0, -1);
    await host.apply(shell('web', 'exit 3', { backoff: { freeAttempts: 1000 } }));
    await host.event('exit', 80);
    expect(linesOf().length).toBeLessThanOrEqual(128); // it does not grow for ever
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    const restarts = host.status('web').restarts;
    expect(restarts).toBeGreaterThan(78);
    await host.reopen(() => {
      appendFileSync(file, '\0\0rted":false}\n{"version":1,"name":"web","restarts":1');
    });
    const { pid } = await host.phase('web', 'running');
    expect(host.status('web').restarts).toBe(restarts);
    kill(pid, 'SIGKILL');
    await until('another run', () => host.status('web').pid !== pid);
    await host.phase('web', 'running');
    await host.reopen();
    for (const line of linesOf()) expect(JSON.parse(line)).toMatchObject({ name: 'web' });
    expect(host.status('web')).toMatchObject({ phase: 'running', restarts: restarts + 1 });
  });

  it('CS-28 what a service was before does not stay on disk', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { env: { PATH: '/usr/bin:/bin', TOKEN: 'hush' } }));
    await host.phase('web', 'running');
    await host.apply(sleeper('web'));
    expect(readFileSync(host.path('services', 'web.json'), 'utf8')).not.toContain('hush');
  });

  it('CS-21 SV-01 leaves a stranger alone who has the pid of what was lost', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const stranger = await mortal();
    await host.reopen(async () => {
      // The keeper knows nothing of it, and its pid is somebody else's by now.
      await withKeeper(host, async (keeper) => {
        const [run] = keeper.runs();
        await keeper.stop(run?.id ?? '', { signal: 'SIGKILL' });
        await keeper.forget(run?.id ?? '');
      });
      host.edit('web', ({ run }) => {
        const { startTicks } = run?.['identity'] as ProcessIdentity;
        // On a quiet machine both have started in the same tick: then nobody could tell them apart.
        const lost = { startTicks: startTicks - 1000, inode: null };
        if (run !== null) run['identity'] = identityOf(stranger.pid, lost);
      });
    });
    expect(await host.event('exit')).toMatchObject({
      how: 'unknown',
      exitCode: null,
      unknownReason: 'gone-while-unobserved',
    });
    const next = await host.event('started', 2);
    expect(next.pid).not.toBe(pid);
    expect(await release(stranger)).toBe(0);
  });

  it('SV-03 does not count what an earlier boot has left', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'), sleeper('down'));
    await host.phase('web', 'running');
    await host.phase('down', 'running');
    await host.supervisor.service('down').stop({ until: 'reboot' });
    await host.reopen(async () => {
      await withKeeper(host, async (keeper) => {
        for (const { id } of keeper.runs()) {
          await keeper.stop(id, { signal: 'SIGKILL' });
          await keeper.forget(id);
        }
      });
      for (const name of ['web', 'down']) {
        host.edit(name, (record) => {
          record['bootId'] = EARLIER;
          if (record['stopped'] !== null) record['stopped'] = { until: 'reboot', bootId: EARLIER };
          record['attempts'] = 9;
          const identity = record.run?.['identity'] as ProcessIdentity | undefined;
          if (identity === undefined || record.run === null) return;
          const { pid, startTicks, pidNamespace } = identity;
          const id = identityId(bootPrefix(EARLIER, pidNamespace), pid, null, startTicks, 0);
          record.run['identity'] = { ...identity, id, inode: null, bootId: EARLIER };
        });
      }
    });
    await host.phase('web', 'running');
    await host.phase('down', 'running');
    expect(host.status('web').attempts).toBe(1);
    expect(host.of('backoff')).toEqual([]);
    // Nobody has asked for a restart: it says what it was.
    expect(host.of('exit').at(-1)).toMatchObject({
      how: 'unknown',
      decision: { restart: true, reason: 'reboot', evidence: { intent: null } },
    });
  });

  it('leaves stopped what an operator has stopped', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.supervisor.service('web').stop({ until: 'reboot' });
    await host.reopen();
    await host.apply(sleeper('web'));
    expect(host.status('web').phase).toBe('stopped');
  });

  it('KB-12 KB-15 stops what nobody desires, and says so', async () => {
    await using host = await SupervisorHost.open();
    let pid: number | null = null;
    const { orphans } = await host.reopen(() =>
      withKeeper(host, async (keeper) => {
        ({ pid } = await keeper.start({ id: 'stray', command: 'sleep', args: ['1000'] }));
      }),
    );
    expect(orphans).toEqual(['stray']);
    expect(await host.event('orphan')).toMatchObject({ run: 'stray', pid });
    await until('its end', () => !isRunning(pid));
    expect(host.supervisor.metrics().orphaned).toBe(1);
    expect(() => host.supervisor.service('stray')).toThrow('there is no service "stray"');
  });

  it('KB-13 drives a removal to its end that it did not finish', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'), sleeper('never', { command: '/nowhere/never' }));
    const { pid } = await host.phase('web', 'running');
    await host.phase('never', 'backoff');
    await host.reopen(() => {
      for (const name of ['web', 'never']) {
        host.edit(name, (record) => {
          record['isRemoved'] = true;
        });
      }
    });
    await until('both to be gone', () => host.supervisor.services().length === 0);
    expect(isRunning(pid)).toBe(false);
    expect(host.of('orphan')).toEqual([]);
    expect(host.of('exit').map(({ service }) => service)).toEqual(['web']);
  });

  it.each([
    ['started after it, does not end by that', true, 'not-asked'],
    ['started before it, has ended by that', false, 'reboot'],
  ])('what was reserved before a power failure, and %s', async (_, isForgotten, reason) => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { run } = await host.phase('web', 'running');
    await host.reopen(async () => {
      await endRun(host, run, isForgotten);
      host.edit('web', (record) => {
        record['bootId'] = EARLIER;
        if (record.run !== null) record.run['identity'] = null;
      });
    });
    if (isForgotten) kill((await host.phase('web', 'running')).pid, 'SIGKILL');
    const { decision } = await host.event('exit');
    expect(decision).toMatchObject({ restart: true, reason });
    await host.phase('web', 'running');
  });

  it('starts what was reserved and never started, under the same id', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { run } = await host.phase('web', 'running');
    await host.reopen(async () => {
      await endRun(host, run);
      host.edit('web', (record) => {
        if (record.run !== null) record.run['identity'] = null;
      });
    });
    const { run: again } = await host.phase('web', 'running');
    expect(again).toBe(run);
    expect(host.of('exit')).toEqual([]);
  });

  it('finds what was started before it could write so', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { run, pid } = await host.phase('web', 'running');
    await host.reopen(() => {
      host.edit('web', (record) => {
        if (record.run !== null) record.run['identity'] = null;
      });
    });
    expect(await host.phase('web', 'running')).toMatchObject({ run, pid });
    expect(host.of('orphan')).toEqual([]);
  });

  it('SV-16 replays what was accepted and not done', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('a'), sleeper('b'));
    const { pid } = await host.phase('a', 'running');
    await host.phase('b', 'running');
    const pending = host.path('services', '+apply.json');
    const stored = host.record('a')['stored'] as object;
    await host.reopen(() => {
      const changed = {
        ...stored,
        digest: 'x',
        runDigest: 'y',
        spec: sleeper('a', { args: ['2000'] }),
      };
      writeFileSync(pending, JSON.stringify({ version: 1, services: [changed] }), { mode: 0o600 });
    });
    await until('b to be removed', () => host.supervisor.services().length === 1);
    await host.event('started', 3);
    expect(isRunning(pid)).toBe(false);
    const { pid: now } = await host.phase('a', 'running');
    expect(await textOf(now, 'cmdline')).toBe('sleep\x002000\x00');
    expect(readdirSync(host.path('services'))).not.toContain('+apply.json');
  });

  it('SV-14 says honestly what it does not know when the keeper was killed', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    const { pid } = await host.phase('web', 'running');
    const keeperPid = host.ready?.keeperPid ?? 0;
    kill(keeperPid, 'SIGKILL');
    await until('the keeper to be gone', () => !isRunning(keeperPid));
    expect(isRunning(pid)).toBe(true);
    kill(pid, 'SIGKILL');
    const exit = await host.event('exit');
    expect(exit.pid).toBe(pid);
    expect(exit.exitCode).toBeNull();
    expect(['unknown', 'killed']).toContain(exit.how);
    await host.event('started', 2);
    expect(host.status('web').phase).toBe('running');
  });

  it('CS-28 keeps its files to itself', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    expect(statSync(host.path('services', 'web.json')).mode & 0o777).toBe(0o600);
    expect(statSync(host.path('services')).mode & 0o777).toBe(0o700);
  });

  it('CS-28 stores what the redaction hook leaves, and then waits for the rest', async () => {
    const redact = ({ env, ...rest }: Parameters<typeof sleeper>[1] & { name: string }) =>
      ({ ...rest, ...(env === undefined ? {} : { env: {} }) }) as ReturnType<typeof sleeper>;
    await using host = await SupervisorHost.open({ redact });
    const service = sleeper('web', { env: { PATH: '/usr/bin:/bin', TOKEN: 'hush' } });
    await host.apply(service);
    const { pid } = await host.phase('web', 'running');
    for (const file of readdirSync(host.path('services'))) {
      expect(readFileSync(host.path('services', file), 'latin1')).not.toContain('hush');
    }
    await host.reopen();
    await host.apply(service);
    expect(host.status('web').pid).toBe(pid); // equal, as its digest says
    await host.reopen();
    kill(pid, 'SIGKILL');
    await host.phase('web', 'waiting');
    await host.apply(service);
    const { pid: next } = await host.phase('web', 'running');
    expect(await textOf(next, 'environ')).toContain('TOKEN=hush');
  });

  it('refuses a directory that another one has', async () => {
    await using host = await SupervisorHost.open();
    const other = SupervisorHost.beside(host.stateDir);
    await expect(other.start()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_IN_USE' });
    await other.close();
  });

  it('CS-26 may be closed before it was started, and twice', async () => {
    await using host = await SupervisorHost.open();
    const path = host.path('unused');
    const unused = SupervisorHost.beside(path);
    await unused.close();
    await unused.close();
    await expect(unused.start()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_CLOSED' });
    rmSync(path, { recursive: true, force: true });
  });
});
