import { evidenceOf, toEvent, type Evidence } from './evidence';
import type { Machine, Told } from './machine';
import { FROM_START_MS, type View } from './views';

/** Evidence that is not what it claims to be. */
export interface Claim {
  name: 'lines lost, and not missed' | 'lines lost' | 'came too late' | 'log of an earlier start';
  evidence: Evidence;
  /**
   * Whether other evidence contradicts it: a recorded press by exitwatch, or the files that a
   * killed machine leaves behind. Otherwise it equals the evidence of an honest witness, bit for
   * bit, and no rule can do better: the code that gathers evidence must not make such claims. These
   * verdicts are only counted.
   */
  isDetectable: boolean;
}

/** These lines are never lost here: without them one life cannot be told from the next. */
const NEW_LIFE: readonly string[] = ['RESET', 'RESUME'];

/** The claims of witnesses that have missed something, knowingly or not. */
export function claimsOf(machine: Machine, view: View): Claim[] {
  return [...lostLines(machine, view), ...cameTooLate(machine, view), ...staleLog(machine, view)];
}

/** The disk was full, so the event log stopped growing for a while. QEMU does not report that. */
function lostLines(machine: Machine, view: View): Claim[] {
  const { events, random, options } = machine;
  const some = events.filter(({ event }) => !NEW_LIFE.includes(event));
  const lost = some[random.between(0, some.length - 1)];
  if (!view.eventLog || lost === undefined || options.incoming) return [];
  const isKept = (each: Told) => each !== lost;
  const known = { ...evidenceOf(machine, { ...view, link: null }) };
  known.events = events.filter(isKept).map(toEvent);
  return [
    {
      name: 'lines lost, and not missed',
      evidence: { ...known, eventsComplete: true },
      isDetectable: lost.event === 'POWERDOWN' && isOnRecord(machine, known),
    },
    {
      name: 'lines lost',
      evidence: { ...known, eventsComplete: false, eventsUnbroken: false },
      isDetectable: true,
    },
  ];
}

/** A press within the first second, before the client connected. */
function cameTooLate(machine: Machine, view: View): Claim[] {
  const { link } = view;
  if (link === null || link.at > FROM_START_MS || !link.asks || link.until !== null) return [];
  const evidence = evidenceOf(machine, { ...view, eventLog: false });
  const isTaken = !evidence.eventsComplete && evidence.initialStatus === 'running';
  if (!isTaken || machine.options.incoming) return [];
  return [
    {
      name: 'came too late',
      evidence: { ...evidence, eventsComplete: true },
      isDetectable: isOnRecord(machine, evidence),
    },
  ];
}

/** The machine was started with `-D` before, and without it this time: the file is still there. */
function staleLog(machine: Machine, view: View): Claim[] {
  const { end, options } = machine;
  const isPlain = machine.truth?.restart === 'wanted' && machine.isReady;
  if (options.log || end?.how !== 'killed' || !isPlain) return [];
  if (!options.pidfile || !options.qmp) return [];
  const evidence = evidenceOf(machine, {
    ...{ ...view, exit: 'unseen', tracedSince: null, pidfile: true, socket: true },
  });
  return [
    {
      name: 'log of an earlier start',
      evidence: {
        ...{ ...evidence, hasLog: true },
        obeyed: { signal: 'SIGTERM', pid: 99, path: '/bin/kill' },
      },
      isDetectable: true,
    },
  ];
}

/** Whether a press by exitwatch was obeyed, and is on record. */
function isOnRecord({ truth, presses }: Machine, { intents }: Evidence): boolean {
  const isOurs = truth?.causes[0] === 'admin-powerdown' && truth.causes.length === 1;
  return isOurs && intents !== null && presses.at(-1)?.by === 'us';
}
