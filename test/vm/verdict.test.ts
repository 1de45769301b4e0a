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

/** We press its power button, and give it a minute. */
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

describe('who had the guest power off', () => {
  const cases: [title: string, evidence: Evidence, expected: object, candidates?: string[]][] = [
    ['its user', { events: [resume(), off(100)] }, USERS],
    ['we, by its agent', { events: [resume(), off(12)], intents: [ours(8)] }, OURS],
    [
      'its user, or another by an agent that others can talk to',
      { events: [resume(), off(100)], agent: 'open' },
      OPEN,
      ['guest-shutdown', 'other-powerdown'],
    ],
    [
      'the same where it is not known whether it has an agent',
      { events: [resume(), off(100)], agent: null },
      OPEN,
      ['guest-shutdown', 'other-powerdown'],
    ],
    ['its user, where we hold its agent', { events: [resume(), off(100)], agent: 'held' }, USERS],
    [
      'we: it installed updates and rebooted first',
      { events: [resume(), press(8), reboot(20), off(30)], intents: [ours(8)] },
      OURS,
    ],
    ['another, the same', { events: [resume(), press(8), reboot(20), off(30)] }, ANOTHERS],
    [
      'we, or its user: it obeyed when nobody waited for it any more',
      { events: [resume(), press(8), off(75)], intents: [ours(8)] },
      OPEN,
      ['admin-powerdown', 'guest-shutdown'],
    ],
    [
      'we, by the second press',
      { events: [resume(), press(8), press(900), off(901)], intents: [ours(8), ours(900)] },
      OURS,
    ],
    [
      'we, when another had pressed in vain',
      { events: [resume(), press(8), press(900), off(901)], intents: [ours(900)] },
      OURS,
    ],
    [
      'another, when we had pressed in vain',
      { events: [resume(), press(8), press(900), off(901)], intents: [ours(8)] },
      ANOTHERS,
    ],
    [
      'we, a moment after it was written down',
      { events: [resume(), press(8.2), off(20)], intents: [ours(8)] },
      OURS,
    ],
    [
      'we, or another: it was pressed a moment before that was written down',
      { events: [resume(), press(7.8), off(20)], intents: [ours(8)] },
      OPEN,
      ['admin-powerdown', 'other-powerdown', 'guest-shutdown'],
    ],
    [
      'its user, when another had pressed in vain a week ago',
      { events: [resume(), press(8), off(7 * DAY_S)] },
      { ...USERS, certainty: 'likely' },
    ],
    [
      'its user, when we had pressed in vain a week ago',
      { events: [resume(), press(8), off(7 * DAY_S)], intents: [ours(8)] },
      { ...USERS, certainty: 'likely' },
    ],
    [
      'its user, when it was reset from outside after a press',
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

  test('it may have been asked before we came, until nothing that old can be what it has obeyed', () => {
    const heard = { eventsComplete: false, initialStatus: 'running', heardSince: at(1) };
    const soon = judge({ ...heard, events: [off(100)] });
    expect(answer(soon)).toEqual(OPEN);
    expect(soon.candidates).toEqual(expect.arrayContaining(['guest-shutdown', 'other-powerdown']));
    const later = judge({ ...heard, events: [off(DAY_S)] });
    expect(answer(later)).toEqual({ ...USERS, certainty: 'likely' });
  });

  test('it may have been asked where it came from', () => {
    const stop = judge({ initialStatus: 'inmigrate', events: [resume(), off(20)] });
    expect(answer(stop)).toEqual(OPEN);
    expect(stop.candidates).toEqual(
      expect.arrayContaining(['guest-shutdown', 'other-powerdown', 'admin-powerdown']),
    );
  });
});

describe('a machine that was stopped, and does not go on here', () => {
  const left = [resume(), event(50, 'STOP'), quit(60)];

  test('may go on elsewhere: it is not started again', () => {
    const stop = judge({ events: left });
    expect(stop.certainty).not.toBe('sure');
    expect(stop.candidates).toEqual(expect.arrayContaining(['other-quit', 'migrated-away']));
    expect(shouldRestart(stop).restart).toBe(false);
  });

  test('the same, killed or told to end by a signal', () => {
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

  test('does, when it says so', () => {
    const stop = judge({ events: left, lastStatus: 'postmigrate' });
    expect(answer(stop)).toMatchObject({ cause: 'migrated-away', restart: false });
    expect(stop.candidates).toEqual(['migrated-away', 'saved']);
  });

  test('does not, where it would have told so', () => {
    const stop = judge({ events: left, tellsMigration: true, lastStatus: 'paused' });
    expect(answer(stop)).toEqual({
      ...{ cause: 'other-quit', userShutdown: false, initiator: 'host', certainty: 'sure' },
      restart: true,
    });
  });

  test.each([
    ['migrate', 'migrated-away'],
    ['save', 'saved'],
  ] as const)('we were about to %s it', (what, cause) => {
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

test('a log that an earlier start may have left says nothing against files that are left', () => {
  const stop = judge({
    exit: null,
    events: [resume()],
    obeyed: { signal: 'SIGTERM', pid: 7, path: null },
    leftovers: { pidfile: true, socket: true },
  });
  expect(stop.certainty).toBe('one-of');
  expect(stop.candidates).toEqual(expect.arrayContaining(['killed', 'forced-stop']));
});

test('by a signal of ours and the exit alone, it may have powered off a moment before', () => {
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

describe('an error', () => {
  const failed: ExitEvent = { ...EXIT, exitCode: 1 };

  const words = 'qemu: load of migration failed';

  test('of one that was greeted and has never run: it could not be started', () => {
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

  test('may be what its guest has ended it with', () => {
    const byLog = judge({ exit: failed, events: [resume()], ready: null });
    expect(byLog.candidates).toContain('vmm-exit');
    const unseen = judge({ exit: null, events: [resume(), off(20)], debugExit: true });
    expect(unseen.certainty).not.toBe('sure');
    expect(unseen.candidates).toContain('vmm-exit');
  });
});

test('a crash whose signal somebody may have sent is nobody’s, as far as we know', () => {
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

test('what was cut short is started again; where that is not known, nobody guesses', () => {
  const killed = judge({ events: [resume()], exit: killedBy('SIGKILL') });
  expect(shouldRestart(killed)).toEqual({ restart: true, because: 'it was cut short' });
  const nothing = judge({ eventsComplete: false, mayLinger: null, exit: null });
  expect(shouldRestart(nothing).restart).toBeNull();
});

test('ends by one hand are one group, as long as they follow each other closely', () => {
  const groups = new EndGroups();
  const killedAt = (seconds: number) =>
    judge({ exit: { ...killedBy('SIGKILL'), exitedAt: at(seconds) } });
  expect(groups.of('first', killedAt(0))).toBe('first');
  expect(groups.of('second', killedAt(9))).toBe('first');
  expect(groups.of('third', killedAt(18))).toBe('first');
  expect(groups.of('fourth', killedAt(29))).toBe('fourth');
});
