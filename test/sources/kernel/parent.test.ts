// Lane: patient

import { ExitMonitor } from '../../../src';

import { EventLog } from '../../support/event-log';
import { KERNEL } from '../../support/kernel';
import { itAsRootOfHost } from '../../support/privilege';
import { LineProcess, program } from '../../support/programs';

const COUNT = 50;
/** Memory that takes the kernel longer to free than a parent to end. */
const MIB = 16;

itAsRootOfHost(
  `the parent’s pid and its name are of one process for ${COUNT} that get another parent as they end`,
  async () => {
    if (!KERNEL.tellsPrograms) return;
    await using monitor = new ExitMonitor({ scope: 'all' });
    const log = new EventLog(monitor);
    await monitor.start();
    const next = new LineProcess(program('reparented'), [String(COUNT), String(MIB)]);
    const rows = (await next.rest()).map((line) => line.split(' ').map(Number));
    expect(rows).toHaveLength(COUNT);
    const isOurs = ({ program: name }: { program: string | null }) => name === 'reparented';
    await log.until('their ends', () => rows.every(([pid = NaN]) => log.of(pid).some(isOurs)));
    for (const [pid = NaN, parent = NaN] of rows) {
      const parents = [
        [parent, 'name-of-15-byte'],
        [next.pid, '8-bytes-'],
      ];
      for (const { parentPid, parentName } of log.of(pid).filter(isOurs)) {
        expect(parents).toContainEqual([parentPid, parentName]);
      }
    }
  },
);
