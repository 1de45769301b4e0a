// Lane: unit

import type { ExitEvent } from '../../src';
import { classifyStop, shouldRestart, type QmpEvent, type VmVerdict } from '../../src/vm';
import { EndGroups } from '../../src/vm/daemon/end-groups';

import { EXIT, intent, killedBy, type Evidence } from './evidence';

/** Seconds since the start. */
const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000);

const event = (seconds: number, name: string, data: Record<string, unknown> = {}): QmpEvent => ({
  event: name,
  data,
  at: at(seconds),
});

const resume = (seconds = 0) => event(seconds, 'RESUME');
const press = (seconds: number) => event(seconds, 'POWERDOWN');
const reboot = (seconds: number) => event(seconds, 'RESET', { guest: true, reason: 'guest-reset' });
const off = (seconds: number) =>
  event(seconds, 'SHUTDOWN', { guest: true, reason: 'guest-shutdown' });
const quit = (seconds: number) =>
  event(seconds, 'SHUTDOWN', { guest: false, reason: 'host-qmp-quit' });

/** exitwatch presses the power button, and waits for a minute. */
const ours = (seconds: number) =>
  intent({ what: 'powerdown', at: at(seconds), deadline: at(seconds + 60) });

const DAY_S = 86_400;

function judge(evidence: Evidence): VmVerdict {
  return classifyStop({
    ...{ name: 'vm', exit: EXIT, events: [], eventsComplete: true, initialStatus: null },
    ...{ eventsUnbroken: true, ready: true, mayLinger: false, obeyed: null, hasLog: false },
    ...{ leftovers: { pidfile: null, socket: null }, intents: [] },
    ...evidence,
  });
}

function answer(stop: VmVerdict) {
  const { cause, userShutdown, initiator, certainty } = stop;
  return { cause, userShutdown, initiator, certainty, restart: shouldRestart(stop).restart };
}

const OURS = {
  ...{ cause: 'admin-powerdown', userShutdown: false, initiator: 'manager', certainty: 'likely' },
  restart: false,
};
const ANOTHERS = { ...OURS, cause: 'other-powerdown', initiator: 'host' };
const USERS = {
  ...{ cause: 'guest-shutdown', userShutdown: true, initiator: 'guest', certainty: 'sure' },
  restart: false,
};
const OPEN = {
  ...{ cause: 'unknown', userShutdown: null, initiator: 'unknown', certainty: 'one-of' },
  restart: false,
};

describe('a guest’s power-off is attributed to', () => {
  const cases: [title: string, evidence: Evidence, expected: object, candidates?: string[]][] = [
    ['its user', { events: [resume(), off(100)] }, USERS],
    ['exitwatch, through its agent', { events: [resume(), off(12)], intents: [ours(8)] }, OURS],
    [
      'its user, or anyone, if others can talk to its agent',
      { events: [resume(), off(100)], agent: 'open' },
      OPEN,
      ['guest-shutdown', 'other-powerdown'],
    ],
    [
      'its user, or anyone, if it is unknown whether it has an agent',
      { events: [resume(), off(100)], agent: null },
      OPEN,
      ['guest-shutdown', 'other-powerdown'],
    ],
    [
      'its user, if exitwatch holds its agent',
      { events: [resume(), off(100)], agent: 'held' },
      USERS,
    ],
    [
      'exitwatch, if it installs updates and reboots first',
      { events: [resume(), press(8), reboot(20), off(30)], intents: [ours(8)] },
      OURS,
    ],
    [
      'another client, if it installs updates and reboots first',
      { events: [resume(), press(8), reboot(20), off(30)] },
      ANOTHERS,
    ],
    [
      'exitwatch or its user, if it obeys after the wait',
      { events: [resume(), press(8), off(75)], intents: [ours(8)] },
      OPEN,
      ['admin-powerdown', 'guest-shutdown'],
    ],
    [
      'exitwatch, after its second press',
      { events: [resume(), press(8), press(900), off(901)], intents: [ours(8), ours(900)] },
      OURS,
    ],
    [
      'exitwatch, after another client’s press had no effect',
      { events: [resume(), press(8), press(900), off(901)], intents: [ours(900)] },
      OURS,
    ],
    [
      'another client, after exitwatch’s press had no effect',
      { events: [resume(), press(8), press(900), off(901)], intents: [ours(8)] },
      ANOTHERS,
    ],
    [
      'exitwatch, a moment after its intent was written',
      { events: [resume(), press(8.2), off(20)], intents: [ours(8)] },
      OURS,
    ],
    [
      'exitwatch or another client, if the press came a moment before the intent was written',
      { events: [resume(), press(7.8), off(20)], intents: [ours(8)] },
      OPEN,
      ['admin-powerdown', 'other-powerdown', 'guest-shutdown'],
    ],
    [
      'its user, if another client’s press had no effect a week ago',
      { events: [resume(), press(8), off(7 * DAY_S)] },
      { ...USERS, certainty: 'likely' },
    ],
    [
      'its user, if exitwatch’s press had no effect a week ago',
      { events: [resume(), press(8), off(7 * DAY_S)], intents: [ours(8)] },
      { ...USERS, certainty: 'likely' },
    ],
    [
      'its user, if it was reset from outside after a press',
      {
        events: [
          resume(),
          press(8),
          event(9, 'RESET', { guest: false, reason: 'host-qmp-system-reset' }),
          off(30),
        ],
      },
      USERS,
    ],
  ];
  test.each(cases.map(([title, ...rest]) => ({ title, rest })))('$title', ({ rest }) => {
    const [evidence, expected, candidates] = rest;
    const stop = judge(evidence);
    expect(answer(stop)).toEqual(expected);
    if (candidates !== undefined) expect(stop.candidates).toEqual(candidates);
  });

  test('nobody, if it may have been asked before exitwatch connected, until that was too long ago', () => {
    const heard = { eventsComplete: false, initialStatus: 'running', heardSince: at(1) };
    const soon = judge({ ...heard, events: [off(100)] });
    expect(answer(soon)).toEqual(OPEN);
    expect(soon.candidates).toEqual(expect.arrayContaining(['guest-shutdown', 'other-powerdown']));
    const later = judge({ ...heard, events: [off(DAY_S)] });
    expect(answer(later)).toEqual({ ...USERS, certainty: 'likely' });
  });

  test('nobody, if it may have been asked on the host it came from', () => {
    const stop = judge({ initialStatus: 'inmigrate', events: [resume(), off(20)] });
    expect(answer(stop)).toEqual(OPEN);
    expect(stop.candidates).toEqual(
      expect.arrayContaining(['guest-shutdown', 'other-powerdown', 'admin-powerdown']),
    );
  });
});

describe('a machine that was stopped, and does not resume here', () => {
  const left = [resume(), event(50, 'STOP'), quit(60)];

  test('may go on elsewhere, so it is not restarted', () => {
    const stop = judge({ events: left });
    expect(stop.certainty).not.toBe('sure');
    expect(stop.candidates).toEqual(expect.arrayContaining(['other-quit', 'migrated-away']));
    expect(shouldRestart(stop).restart).toBe(false);
  });

  test('may go on elsewhere, too, if it is killed or ended by a signal', () => {
    const killed = judge({
      events: left.slice(0, 2),
      exit: killedBy('SIGKILL'),
    });
    const asked = judge({
      events: [...left.slice(0, 2), event(60, 'SHUTDOWN', { guest: false, reason: 'host-signal' })],
    });
    for (const stop of [killed, asked]) {
      expect(stop.certainty).not.toBe('sure');
      expect(stop.candidates).toContain('migrated-away');
      expect(shouldRestart(stop).restart).toBe(false);
    }
  });

  test('has migrated if it reports that', () => {
    const stop = judge({ events: left, lastStatus: 'postmigrate' });
    expect(answer(stop)).toMatchObject({ cause: 'migrated-away', restart: false });
    expect(stop.candidates).toEqual(['migrated-away', 'saved']);
  });

  test('has not migrated if it would have reported that', () => {
    const stop = judge({ events: left, tellsMigration: true, lastStatus: 'paused' });
    expect(answer(stop)).toEqual({
      ...{ cause: 'other-quit', userShutdown: false, initiator: 'host', certainty: 'sure' },
      restart: true,
    });
  });

  test.each([
    ['migrate', 'migrated-away'],
    ['save', 'saved'],
  ] as const)('has an intent of exitwatch to %s it', (what, cause) => {
    const stop = judge({
      events: left,
      lastStatus: 'postmigrate',
      intents: [intent({ what, at: at(40), deadline: at(100) })],
    });
    expect(answer(stop)).toEqual({
      ...{ cause, userShutdown: false, initiator: 'manager', certainty: 'likely', restart: false },
    });
  });
});

test('a log that may come from an earlier start does not outweigh files left behind', () => {
  const stop = judge({
    exit: null,
    events: [resume()],
    obeyed: { signal: 'SIGTERM', pid: 7, path: null },
    leftovers: { pidfile: true, socket: true },
  });
  expect(stop.certainty).toBe('one-of');
  expect(stop.candidates).toEqual(expect.arrayContaining(['killed', 'forced-stop']));
});

test('with only a signal of exitwatch and the exit, the guest may have powered off a moment before', () => {
  const stop = judge({
    eventsComplete: false,
    mayLinger: true,
    intents: [intent({ what: 'SIGTERM', at: at(0), deadline: new Date(EXIT.exitedAt) })],
  });
  expect(stop).toMatchObject({ cause: 'forced-stop', userShutdown: null, initiator: 'manager' });
  expect(stop.candidates).toEqual(
    expect.arrayContaining(['forced-stop', 'guest-shutdown', 'other-powerdown', 'guest-panic']),
  );
  expect(shouldRestart(stop).restart).toBe(false);
});

test('a press that may have been missed keeps a power-off from being sure, however long we listened', () => {
  const heard = { events: [off(0)], eventsComplete: false, heardSince: at(-10_000) };
  expect(judge({ ...heard, eventsUnbroken: true })).toMatchObject({ userShutdown: true });
  const broken = judge({ ...heard, eventsUnbroken: false });
  expect(broken).toMatchObject({ cause: 'unknown', userShutdown: null });
  expect(broken.candidates).toContain('other-powerdown');
});

describe('an error', () => {
  const failed: ExitEvent = { ...EXIT, exitCode: 1 };

  const words = 'qemu: load of migration failed';

  test('of a machine that was greeted but never ran is a failed start', () => {
    for (const initialStatus of ['inmigrate', 'prelaunch']) {
      const stop = judge({
        exit: failed,
        initialStatus,
        lastWords: [words],
      });
      expect(answer(stop)).toMatchObject({ cause: 'start-failed', restart: null });
      expect(stop.evidence).toContainEqual(
        expect.objectContaining({ source: 'log', text: `it logged: ${words}` }),
      );
    }
  });

  test('may be the status with which its guest ended it', () => {
    const byLog = judge({ exit: failed, events: [resume()], ready: null });
    expect(byLog.candidates).toContain('vmm-exit');
    const unseen = judge({ exit: null, events: [resume(), off(20)], debugExit: true });
    expect(unseen.certainty).not.toBe('sure');
    expect(unseen.candidates).toContain('vmm-exit');
  });
});

test('a crash whose signal may have been sent has no known initiator', () => {
  const exit = {
    ...EXIT,
    how: 'killed',
    exitCode: null,
    signal: 'SIGSEGV',
    traced: false,
  } as const;
  const stop = judge({ exit: { ...exit, coreDumped: false } });
  expect(stop).toMatchObject({ certainty: 'likely', initiator: 'unknown' });
  expect(stop.candidates).toEqual(['vmm-crash', 'killed']);
});

test('a machine that was cut short is restarted, and there is no answer if that is unknown', () => {
  const killed = judge({ events: [resume()], exit: killedBy('SIGKILL') });
  expect(shouldRestart(killed)).toEqual({ restart: true, because: 'it was cut short' });
  expect(shouldRestart(killed, { isSuperseded: false }).restart).toBe(true);
  expect(shouldRestart(killed, { isSuperseded: true }).restart).toBe(false);
  expect(shouldRestart(killed, { isSuperseded: null }).restart).toBeNull();
  const nothing = judge({ eventsComplete: false, mayLinger: null, exit: null });
  expect(shouldRestart(nothing).restart).toBeNull();
});

test('ends by one sender form a group as long as they follow each other closely', () => {
  const groups = new EndGroups();
  const killedAt = (seconds: number) =>
    judge({ exit: { ...killedBy('SIGKILL'), exitedAt: at(seconds) } });
  expect(groups.of('first', killedAt(0))).toBe('first');
  expect(groups.of('second', killedAt(9))).toBe('first');
  expect(groups.of('third', killedAt(18))).toBe('first');
  expect(groups.of('fourth', killedAt(29))).toBe('fourth');
});
