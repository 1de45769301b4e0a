// Lane: patient

import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';

import { sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

/** A service whose start waits before its exec, as for a disk that does not answer. */
async function hang(host: SupervisorHost) {
  const envFile = host.path('secrets');
  execFileSync('mkfifo', [envFile]);
  await host.apply(sleeper('web', { envFile }));
  const writer = await until('the child to read', () => openWriter(envFile));
  return () => {
    closeSync(writer);
  };
}

/** `null`: nobody has it open for reading. */
function openWriter(fifo: string): number | null {
  try {
    return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}

describe('KB-04 a start that does not come to an end', () => {
  it('is cancelled by a stop, and is no failure', async () => {
    await using host = await SupervisorHost.open();
    const release = await hang(host);
    expect(host.status('web').phase).toBe('starting');
    await host.supervisor.service('web').stop();
    release();
    expect(host.status('web')).toMatchObject({ phase: 'stopped', run: null, lastError: null });
    expect(host.of('started')).toEqual([]);
    expect(host.of('warning')).toEqual([]);
  });

  it('is cancelled by a removal', async () => {
    await using host = await SupervisorHost.open();
    const release = await hang(host);
    await host.apply();
    expect(await host.event('stopped')).toMatchObject({ service: 'web', phase: 'removed' });
    release();
  });

  it('makes room for what was applied instead', async () => {
    await using host = await SupervisorHost.open();
    const release = await hang(host);
    await host.apply(sleeper('web'));
    const { restarts } = await host.phase('web', 'running');
    release();
    expect(restarts).toBe(0);
    expect(host.of('started')).toHaveLength(1);
  });

  it('is cancelled by a stop of the next supervisor', async () => {
    await using host = await SupervisorHost.open();
    const release = await hang(host);
    await host.reopen();
    await host.supervisor.service('web').stop();
    release();
    expect(host.status('web')).toMatchObject({ phase: 'stopped', run: null });
  });
});
