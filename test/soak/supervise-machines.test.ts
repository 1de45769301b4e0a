// Lane: patient

import { folderOfController, MemoryCgroup } from '../support/controllers';
import { kill } from '../support/kill';
import { INSTALLED } from '../support/qemu';
import { randomFrom } from '../support/random';
import { ROUNDS } from '../support/rounds';
import { SuperviseHost } from '../support/supervise';
import { SupervisedMachine } from '../support/supervised-machine';
import { until } from '../support/wait';

const TIMES = 5 * ROUNDS;
const SEED = Number(process.env['EXITWATCH_SEED'] ?? Date.now());

jest.setTimeout(60_000 + TIMES * 10_000);

const MAY_LIMIT_MEMORY = process.geteuid?.() === 0 && folderOfController('memory') !== null;

/** What is done to the machine, and whether it is to run afterwards. */
const DEEDS = [
  { what: 'its guest powers it off', isUp: false },
  { what: 'a stranger sends SIGTERM', isUp: true },
  { what: 'a stranger sends SIGKILL', isUp: true },
  { what: 'it is migrated', isUp: false },
  { what: 'its operator stops it', isUp: false },
  { what: 'the OOM killer ends it', isUp: true },
] as const;

type Deed = (typeof DEEDS)[number];
const POSSIBLE = DEEDS.filter(({ what }) => MAY_LIMIT_MEMORY || !what.startsWith('the OOM killer'));

async function doTo(
  machine: SupervisedMachine,
  host: SuperviseHost,
  pid: number,
  { what }: Deed,
): Promise<void> {
  switch (what) {
    case 'its guest powers it off':
      await machine.press('p');
      break;
    case 'a stranger sends SIGTERM':
      kill(pid, 'SIGTERM');
      break;
    case 'a stranger sends SIGKILL':
      kill(pid, 'SIGKILL');
      break;
    case 'it is migrated':
      await machine.ask('migrate', { uri: 'exec:cat > /dev/null' });
      await until('it to be saved', async () => {
        const { status } = (await machine.ask('query-migrate')) as { status: string };
        return status === 'completed';
      });
      await machine.ask('quit').catch(() => undefined);
      break;
    case 'its operator stops it':
      await host.service('stop', 'vm1');
      break;
    case 'the OOM killer ends it': {
      await using cgroup = new MemoryCgroup(16 * 1024 * 1024);
      cgroup.add(pid);
      const more = { 'qom-type': 'memory-backend-ram', id: 'more', size: 64 * 1024 * 1024 };
      await machine.ask('object-add', { ...more, prealloc: true }).catch(() => undefined);
    }
  }
}

INSTALLED.it(
  `a machine is up or down as it should, ${TIMES} times, while its supervisor is killed`,
  async () => {
    await using host = new SuperviseHost();
    const machine = new SupervisedMachine(host);
    host.write(machine.describe({ stop: { powerdownMs: 300, graceMs: 5000 } }));
    await host.start();
    const random = randomFrom(SEED);
    const story: string[] = [];
    let pid = await machine.booted();
    for (let round = 0; round < TIMES; round++) {
      const deed = POSSIBLE[random(POSSIBLE.length)] ?? DEEDS[0];
      const isStop = deed.what === 'its operator stops it';
      // Before it, a moment after it, or not at all.
      const crash = isStop ? 2 : random(3);
      story.push(`${round}: ${deed.what}, pid ${pid}, crash ${crash}`);
      if (crash === 0) await host.crash();
      await doTo(machine, host, pid, deed);
      if (crash === 1) {
        await new Promise((resolve) => setTimeout(resolve, random(300)));
        await host.crash();
      }
      if (crash < 2) await host.start();
      const known = () => `seed ${SEED}\n${story.join('\n')}\n${host.story()}`;
      if (deed.isUp) {
        const before = pid;
        await until(
          'another run',
          async () => {
            const found = await host.listed('vm1');
            return found.pid !== null && found.pid !== before;
          },
          known,
        );
        pid = await machine.booted();
      } else {
        const wanted = isStop ? 'stopped' : 'ended';
        await until(
          `it to be ${wanted}`,
          async () => (await host.listed('vm1')).phase === wanted,
          known,
        );
        const started = host.service('start', 'vm1');
        pid = await machine.booted();
        await started;
      }
    }
    machine.close();
  },
);
