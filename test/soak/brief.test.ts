// Lane: storm

import { ExitMonitor, type ExitEvent } from '../../src';

import { EventLog } from '../support/event-log';
import { describeForEachFilter } from '../support/filters';
import { itAsRoot } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { ROUNDS } from '../support/rounds';

const COUNT = 2000 * ROUNDS;

/** With the cBPF filter start times come from /proc, which has a resolution of one clock tick. */
const TICK_MS = { ebpf: 0, cbpf: 10 };

describeForEachFilter((filter) => {
  itAsRoot(`reports ${COUNT} short-lived processes correctly`, async () => {
    await using monitor = new ExitMonitor({ scope: 'all' });
    const log = new EventLog(monitor);
    await monitor.start();
    const lines = await new LineProcess(program('brief'), [String(COUNT)]).rest();
    expect(lines).toHaveLength(COUNT);
    await log.untilAllOf(lines.map((line) => Number(line.split(' ')[0])));

    const isRight = (event: ExitEvent, line: string) => {
      const [, name, uid, status, earliest, latest] = line.split(' ');
      const started = event.startedAt?.getTime();
      const isKnown = event.name !== null && event.uid !== null && started !== undefined;
      return (
        event.exitCode === Number(status) &&
        (isKnown || filter === 'cbpf') &&
        [name, null].includes(event.name) &&
        [Number(uid), null].includes(event.uid) &&
        // Dates are truncated to milliseconds.
        (started ?? Infinity) >= Math.floor(Number(earliest)) - TICK_MS[filter] &&
        (started ?? 0) <= Number(latest)
      );
    };
    const wrong = lines.filter((line) => {
      const events = log.of(Number(line.split(' ')[0]));
      return !events.some((event) => isRight(event, line));
    });
    expect(wrong).toEqual([]);
  });
});
