// Lane: patient

import { ExitMonitor, identify } from '../../../src';

import { EventLog } from '../../support/event-log';
import { describeForEachFilter } from '../../support/filters';
import { KERNEL } from '../../support/kernel';
import { itAsRoot } from '../../support/privilege';
import { LineProcess, program } from '../../support/programs';

const COUNT = 50;

describeForEachFilter((filter) => {
  itAsRoot('reports the parent and the id of processes that the kernel reaps at once', async () => {
    await using monitor = new ExitMonitor({ scope: 'all' });
    const log = new EventLog(monitor);
    await monitor.start();
    const parent = new LineProcess(program('reaped-at-once'), [String(COUNT)]);
    const pids: number[] = [];
    while (pids.length < COUNT) pids.push(Number(await parent.line()));
    const ids = pids.map((pid) => identify(pid)?.id);
    parent.child.stdin.end();
    await parent.ended;
    await log.untilAllOf(pids);
    const events = pids.flatMap((pid) => log.of(pid));
    const isNoted = filter === 'ebpf' && KERNEL.tellsPrograms;
    expect(events.map(({ parentPid }) => parentPid)).toEqual(
      pids.map(() => (isNoted ? parent.pid : null)),
    );
    if (isNoted) expect(events.map(({ id }) => id)).toEqual(ids);
    for (const event of events) expect(event).toMatchObject({ how: 'exited', exitCode: 7 });
  });
});
