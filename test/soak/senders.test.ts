// Lane: storm

import { ExitMonitor, type ExitEvent } from '../../src';

import { EventLog } from '../support/event-log';
import { itAsRootOfHost } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { ROUNDS } from '../support/rounds';

const REPEATS = 3 * ROUNDS;
const AT_ONCE = 50;

const SIGNALS: Record<string, string> = { command: 'SIGKILL' };

/** The targets of one round, each with its killer. */
async function killSome(killers: LineProcess, onSpawned: (pids: number[]) => void) {
  killers.child.stdin.write(`spawn ${AT_ONCE}\n`);
  const spawned = await killers.take(AT_ONCE);
  onSpawned(spawned.map((line) => Number(line.split(' ')[1])));
  killers.child.stdin.write('kill\n');
  return (await killers.take(AT_ONCE)).map((line) => {
    const [, pid, way = '', sender, uid, name, parent] = line.split(' ');
    return {
      pid: Number(pid),
      way,
      sender: Number(sender),
      uid: Number(uid),
      name,
      parent: Number(parent),
    };
  });
}

describe.each(['watched', 'all'] as const)(
  'with scope %s, while processes come and go',
  (scope) => {
    itAsRootOfHost(
      `names all ${REPEATS * AT_ONCE} senders, although each is gone at once`,
      async () => {
        await using monitor = new ExitMonitor({ scope, trace: 'on' });
        const log = new EventLog(monitor);
        await monitor.start();
        const storm = new LineProcess(program('storm'), ['1000000']);
        const killers = new LineProcess(program('senders'), []);
        const node = process.pid;
        const wrong: unknown[] = [];
        let right = 0;
        for (let round = 0; round < REPEATS; round++) {
          const killed = await killSome(killers, (pids) => {
            if (scope === 'watched') for (const pid of pids) monitor.watch(pid);
          });
          const targets = killed.map(({ pid }) => pid);
          const isReported = (pid: number) => log.of(pid).some(({ name }) => name === 'target');
          await log.until('the exits of all targets', () => targets.every(isReported));
          for (const { pid, way, sender, uid, name, parent } of killed) {
            const event = log.of(pid).findLast(({ name: ended }) => ended === 'target');
            const signal = SIGNALS[way] ?? 'SIGTERM';
            const ancestors =
              parent === killers.pid ? [killers.pid, node] : [parent, killers.pid, node];
            if (isRight(event, { signal, sender, uid, name, ancestors })) right++;
            else wrong.push({ pid, way, sender, uid, name, parent, told: event });
          }
          log.exits.clear();
        }
        storm.child.kill();
        killers.child.stdin.end();
        await Promise.all([storm.ended, killers.ended]);
        expect(wrong).toEqual([]);
        expect(right).toBe(REPEATS * AT_ONCE);
      },
    );
  },
);

function isRight(
  event: ExitEvent | undefined,
  told: {
    signal: string;
    sender: number;
    uid: number;
    name?: string | undefined;
    ancestors: number[];
  },
): boolean {
  if (event?.sender?.pid == null || !event.traced) return false;
  const { sender } = event;
  return (
    sender.origin === 'kill' &&
    sender.signal === told.signal &&
    sender.pid === told.sender &&
    sender.uid === told.uid &&
    sender.name === told.name &&
    told.ancestors.every((pid, i) => sender.ancestors[i]?.pid === pid)
  );
}
