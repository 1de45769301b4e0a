// Lane: storm

import { ExitMonitor, type ExitEvent, type Filter } from '../../src';

import {
  DEATH_NAMES,
  DEATHS,
  DyingProcesses,
  ENDS_BESIDE_ITS_FIRST,
  HAVE_CODES_OF_THEIR_OWN,
  isEndOf,
  LATE_STAMP_NS,
  type Death,
  type Reap,
} from '../support/deaths';
import { EventLog } from '../support/event-log';
import { describeForEachFilter } from '../support/filters';
import { KERNEL, MAY_LISTEN } from '../support/kernel';
import { ROUNDS } from '../support/rounds';

/** `npm run test:soak` runs more. */

/** The wait status that an event implies. */
function statusOf(event: ExitEvent): number | string {
  switch (event.how) {
    case 'exited':
      return event.exitCode << 8;
    case 'killed':
    case 'dumped':
      return SIGNALS[event.signal] ?? event.signal;
    case 'unknown':
      return event.unknownReason;
  }
}

const SIGNALS: Record<string, number> = {
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGTERM: 15,
  'SIGRTMIN+3': 37,
};

/** A CPU of an emulated machine may stall while a thread is between its end and its event. */
const PATIENCE = process.env['EXITWATCH_EMULATED'] === undefined ? {} : { statusTimeoutMs: 3000 };

/** In terms of CLOCK_MONOTONIC, which the C programs use. A Date is truncated to milliseconds. */
function exitTime(event: ExitEvent): { earliestNs: number; latestNs: number } {
  const clockNs = Date.now() * 1e6 - Number(process.hrtime.bigint());
  const told = event.exitedNs ?? event.exitedAt.getTime() * 1e6 - clockNs;
  const slackNs = event.uncertaintyMs * 1e6 + (event.exitedNs === null ? 2e6 : 0);
  return { earliestNs: told - slackNs, latestNs: told + slackNs };
}

/** The events of exactly this process: other processes have had its pid before and since. */
const eventsOf = (death: Death, log: EventLog) =>
  log.of(death.pid).filter((event) => isEndOf(death, event));

/** The event's values beside those of waitpid. */
function describeDeath(death: Death, events: readonly ExitEvent[]) {
  const [event] = events;
  const time = event && exitTime(event);
  return {
    death: death.name,
    events: events.length,
    ended: event && statusOf(event),
    dumped: event?.coreDumped,
    lossless: event?.lossless,
    notTooEarly: time && time.latestNs >= death.aliveNs,
    notTooLate: time && time.earliestNs <= death.deadNs + LATE_STAMP_NS,
    waitStatus: death.status === -1 ? DEATHS[death.name] : death.status,
  };
}

/** Whether the status may be unknown because the process was reaped before exitwatch could look. */
function mayBeOpen({ name }: Death, { source, filter }: Witness): boolean {
  const isUnclear = filter === 'cbpf' && HAVE_CODES_OF_THEIR_OWN.has(name);
  return isUnclear || (source === 'pidfd' && !KERNEL.pidfdStatus);
}

function expectedOf(death: Death, witness: Witness, event: ExitEvent | undefined) {
  const { source } = witness;
  const status = DEATHS[death.name];
  const signal = status & 0x7f;
  // A pidfd may lack the core bit if the parent reaps first.
  const mayLackCore =
    (source === 'pidfd' || (witness.filter === 'cbpf' && !KERNEL.pidfdStatus)) &&
    (signal === SIGNALS['SIGSEGV'] || signal === SIGNALS['SIGABRT']);
  const isOpen = mayBeOpen(death, witness) && event?.how === 'unknown';
  const isUnknown = source === 'poll' || isOpen || (mayLackCore && event?.coreDumped === null);
  // If a process is reaped at once, its pidfd has the first thread's code.
  const isFirsts =
    source === 'pidfd' && ENDS_BESIDE_ITS_FIRST.has(death.name) && event?.exitCode === 0;
  const known = isFirsts ? 0 : signal === 0 ? status : signal;
  const told = isOpen ? event.unknownReason : known;
  return {
    death: death.name,
    events: 1,
    ended: source === 'poll' ? 'polled' : told,
    dumped: isUnknown ? null : (status & 0x80) !== 0,
    lossless: true,
    notTooEarly: true,
    notTooLate: true,
    waitStatus: status,
  };
}

type Scope = 'all' | 'watched';
type Source = 'auto' | 'connector' | 'pidfd' | 'poll';

/** The part of the result of `start()` that says what observes the deaths. */
interface Witness {
  source: Exclude<Source, 'auto'>;
  filter: Filter | null;
}

function describeDeaths(scope: Scope, source: Source, witness: Witness): void {
  const reaps: Reap[] = ['now', 'late', 'ignore'];
  const watches = source !== 'connector' || scope === 'watched';

  it.each(reaps)(
    `scope ${scope}, source ${source}: reports every death once, with the status of waitpid, when the group is dead (reaped: %s)`,
    async (reap) => {
      await using monitor = new ExitMonitor({ scope, source, pollIntervalMs: 50, ...PATIENCE });
      const log = new EventLog(monitor);
      expect(await monitor.start()).toMatchObject(witness);
      const all: Death[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const dying = await DyingProcesses.spawn(DEATH_NAMES, reap);
        if (watches) for (const pid of dying.pids) monitor.watch(pid);
        const deaths = await dying.die();
        all.push(...deaths);
        await log.until('the exits of a round', () =>
          deaths.every((death) => eventsOf(death, log).length > 0),
        );
      }
      // A false or second event would have arrived by now: its process's exit is on record.
      const last = await DyingProcesses.spawn(['exit-0'], 'now');
      if (watches) monitor.watch(last.pids[0] ?? 0);
      const deaths = await last.die();
      await log.until('the exit of the last process', () =>
        deaths.every((death) => eventsOf(death, log).length > 0),
      );

      for (const death of all) {
        const events = eventsOf(death, log);
        const expected = expectedOf(death, witness, events[0]);
        expect(describeDeath(death, events)).toMatchObject(expected);
      }
      expect(log.gaps).toEqual([]);
    },
    60_000 + ROUNDS * 3000,
  );
}

describeForEachFilter((filter) => {
  describeDeaths('all', 'connector', { source: 'connector', filter });
  describeDeaths('watched', 'connector', { source: 'connector', filter });
  describeDeaths('all', 'auto', { source: 'connector', filter });
  describeDeaths('watched', 'auto', { source: 'connector', filter });
});

describeDeaths('watched', 'pidfd', { source: 'pidfd', filter: null });

// Without access to the connector, auto selects pidfds.
if (!MAY_LISTEN) describeDeaths('watched', 'auto', { source: 'pidfd', filter: null });

describeDeaths('watched', 'poll', { source: 'poll', filter: null });
