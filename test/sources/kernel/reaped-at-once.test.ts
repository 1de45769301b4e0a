import { ExitMonitor, identify } from '../../../src';

import { EventLog } from '../../support/event-log';
import { describeForEachFilter } from '../../support/filters';
import { KERNEL } from '../../support/kernel';
import { itAsRoot } from '../../support/privilege';
import { LineProcess } from '../../support/programs';

const COUNT = 50;

/** Starts children that wait for the end of its input, and that the kernel reaps by itself. */
const PARENT = `
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(${COUNT}):
    child = os.fork()
    if child == 0:
        os.read(0, 1)
        os._exit(7)
    print(child, flush=True)
try:
    os.wait()
except ChildProcessError:
    pass
`;

describeForEachFilter((filter) => {
  itAsRoot('reports the parent and the id of processes that the kernel reaps at once', async () => {
    await using monitor = new ExitMonitor({ scope: 'all' });
    const log = new EventLog(monitor);
    await monitor.start();
    const parent = new LineProcess('python3', ['-c', PARENT]);
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
