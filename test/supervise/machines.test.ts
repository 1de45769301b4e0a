// Lane: patient

import { kill } from '../support/kill';
import { INSTALLED } from '../support/qemu';
import { SuperviseHost } from '../support/supervise';
import { isRunning } from '../support/supervisor';
import { SupervisedMachine } from '../support/supervised-machine';
import { until } from '../support/wait';

jest.setTimeout(120_000);

async function machineOf(host: SuperviseHost, more = {}): Promise<SupervisedMachine> {
  const machine = new SupervisedMachine(host);
  host.write(machine.describe(more));
  await host.start();
  return machine;
}

const lastOf = async (host: SuperviseHost) => {
  const { phase, lastEnd } = await host.listed('vm1');
  return { phase, reason: lastEnd?.reason, because: lastEnd?.because };
};

describe('a machine', () => {
  INSTALLED.it('is left off when its guest has powered it off, whoever supervises it', async () => {
    await using host = new SuperviseHost();
    const machine = await machineOf(host);
    await machine.booted();
    await machine.press('p');
    await host.phase('vm1', 'ended');
    const ended = { phase: 'ended', reason: 'verdict' };
    expect(await lastOf(host)).toMatchObject(ended);
    expect((await lastOf(host)).because).toMatch(/^its guest powered off \(vm1: .*sure\)/);
    await host.end();
    await host.start();
    expect(await lastOf(host)).toMatchObject(ended);
    if (process.geteuid?.() === 0) {
      await host.end();
      await host.startInAnotherBoot();
      expect(await lastOf(host)).toMatchObject(ended);
    }
    machine.close();
  });

  INSTALLED.it('is started again when a stranger has ended it', async () => {
    await using host = new SuperviseHost();
    const machine = await machineOf(host);
    let pid = await machine.booted();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      kill(pid, signal);
      await until('another run', async () => {
        const found = await host.listed('vm1');
        return found.pid !== null && found.pid !== pid;
      });
      const { reason, because } = await lastOf(host);
      expect({ signal, reason }).toEqual({ signal, reason: 'verdict' });
      expect(because).toMatch(/^it was cut short \(vm1: /);
      pid = await machine.booted();
    }
    machine.close();
  });

  INSTALLED.it('is judged as well when it ended while nobody supervised it', async () => {
    await using host = new SuperviseHost();
    const machine = await machineOf(host);
    const pid = await machine.booted();
    await host.crash();
    kill(pid, 'SIGTERM');
    await until('it to end', () => !isRunning(pid));
    await host.start();
    await machine.booted();
    expect((await lastOf(host)).because).toMatch(/^it was cut short \(vm1: /);
    await host.crash();
    await machine.press('p');
    await host.start();
    await host.phase('vm1', 'ended');
    expect((await lastOf(host)).because).toMatch(/^its guest powered off \(vm1: /);
    machine.close();
  });

  INSTALLED.it('is asked by its power button to end, and then by a signal', async () => {
    await using host = new SuperviseHost();
    const machine = await machineOf(host, { stop: { powerdownMs: 30_000, graceMs: 5000 } });
    await machine.booted();
    await machine.press('a');
    expect((await host.service('stop', 'vm1')).lines).toEqual(['vm1 is stopped']);
    expect(host.of('warning')).toEqual([]);
    expect(await lastOf(host)).toMatchObject({ phase: 'stopped', reason: 'stop' });
    host.write(machine.describe({ stop: { powerdownMs: 500, graceMs: 5000 } }));
    expect(await host.service('apply')).toMatchObject({ code: 0 });
    const start = host.service('start', 'vm1');
    await machine.booted(); // it does not obey now
    await start;
    expect((await host.service('stop', 'vm1')).lines).toEqual(['vm1 is stopped']);
    expect(host.of('warning')).toMatchObject([{ service: 'vm1', code: 'ERR_EXITWATCH_CONTROL' }]);
    machine.close();
  });

  INSTALLED.it('is not started again when it continues elsewhere', async () => {
    await using host = new SuperviseHost();
    const machine = await machineOf(host);
    await machine.booted();
    await machine.ask('migrate', { uri: `exec:cat > ${host.path('saved')}` });
    await until('it to be saved', async () => {
      const { status } = (await machine.ask('query-migrate')) as { status: string };
      return status === 'completed';
    });
    await machine.ask('quit').catch(() => undefined);
    await host.phase('vm1', 'ended');
    expect((await lastOf(host)).because).toMatch(/^it (may )?continues? elsewhere/);
    machine.close();
  });
});
