import type { Intent } from '../../src/process';
import { classifyStop, type QmpEvent, type StopEvidence } from '../../src/vm';
import { obeyedSignal } from '../../src/vm/qemu/obeyed-signal';

import { EXIT, intent, NOW, secondsAgo, sender } from './evidence';

const event = (name: string, data: Record<string, unknown> = {}): QmpEvent => ({
  event: name,
  data,
  at: NOW,
});

const RESUME = event('RESUME');
const POWERDOWN = event('POWERDOWN');
const STOP = event('STOP');
const GUEST_SHUTDOWN = event('SHUTDOWN', { guest: true, reason: 'guest-shutdown' });
const HOST_SIGNAL = event('SHUTDOWN', { guest: false, reason: 'host-signal' });

function judge(evidence: Partial<StopEvidence>) {
  return classifyStop({
    name: 'vm',
    exit: EXIT,
    events: [],
    eventsComplete: false,
    initialStatus: null,
    eventsUnbroken: true,
    ready: true,
    mayLinger: false,
    obeyed: null,
    hasLog: false,
    leftovers: { pidfile: null, socket: null },
    intents: [],
    ...evidence,
  });
}

const complete = (...events: QmpEvent[]) => ({ events: [RESUME, ...events], eventsComplete: true });

test('a guest that powers itself off, with a witness who was there all the time', () => {
  expect(judge(complete(GUEST_SHUTDOWN))).toMatchObject({
    ...{ cause: 'guest-shutdown', userShutdown: true, initiator: 'guest', certainty: 'sure' },
    candidates: ['guest-shutdown'],
  });
});

test('without one, somebody may have pressed its power button: nobody knows whose doing it was', () => {
  const { cause, userShutdown, certainty, candidates } = judge({ events: [GUEST_SHUTDOWN] });
  expect({ cause, userShutdown, certainty }).toEqual({
    ...{ cause: 'unknown', userShutdown: null, certainty: 'one-of' },
  });
  expect(candidates).toContain('guest-shutdown');
  expect(candidates).toContain('other-powerdown');
});

test('a power button that we have pressed is ours, on record or not heard of', () => {
  const own = [intent({ what: 'powerdown' })];
  for (const evidence of [complete(POWERDOWN, GUEST_SHUTDOWN), { events: [GUEST_SHUTDOWN] }]) {
    expect(judge({ ...evidence, intents: own })).toMatchObject({
      ...{
        cause: 'admin-powerdown',
        userShutdown: false,
        initiator: 'manager',
        certainty: 'likely',
      },
    });
  }
});

test('an intent that was not delivered, or superseded, or is over, is not what ended it', () => {
  const forgotten: Partial<Intent>[] = [
    { outcome: 'not-delivered' },
    { outcome: 'superseded' },
    { at: secondsAgo(7200), deadline: secondsAgo(7000) },
    { at: secondsAgo(7200), deadline: secondsAgo(7000), outcome: 'expired' },
  ];
  for (const changes of forgotten) {
    const intents = [intent({ what: 'powerdown', ...changes })];
    expect(judge({ ...complete(GUEST_SHUTDOWN), intents })).toMatchObject({ userShutdown: true });
    const terms = [intent(changes)];
    expect(judge({ intents: terms }).initiator).toBe('unknown');
  }
});

test('one that nobody has settled may have been carried out', () => {
  for (const outcome of ['pending', 'expired', 'uncertain'] as const) {
    expect(judge({ intents: [intent({ outcome })] })).toMatchObject({
      ...{ cause: 'forced-stop', initiator: 'manager', userShutdown: null, certainty: 'likely' },
    });
  }
});

test('a stranger’s SIGTERM is the host’s, and never the user’s', () => {
  expect(judge(complete(HOST_SIGNAL))).toMatchObject({
    ...{ cause: 'forced-stop', userShutdown: false, initiator: 'host', certainty: 'sure' },
  });
});

test('the same with an intent of ours is ours', () => {
  expect(judge({ ...complete(HOST_SIGNAL), intents: [intent()] })).toMatchObject({
    ...{ cause: 'forced-stop', userShutdown: false, initiator: 'manager', certainty: 'sure' },
  });
});

test('with a signal alone, it may have powered off a moment before: both are named', () => {
  const exit = { ...EXIT, signalsReceived: [sender('SIGTERM')] };
  const stop = judge({ exit });
  expect(stop).toMatchObject({ cause: 'forced-stop', userShutdown: null, certainty: 'likely' });
  expect(stop.candidates).toEqual(expect.arrayContaining(['forced-stop', 'guest-shutdown']));
});

test('with nothing but exit 0 nobody knows, and the user is not guessed', () => {
  const stop = judge({ exit: { ...EXIT, traced: false } });
  expect(stop).toMatchObject({ cause: 'unknown', userShutdown: null, certainty: 'one-of' });
  expect(stop.candidates).toContain('guest-shutdown');
  expect(stop.candidates).toContain('forced-stop');
  expect(stop.summary).toBe(
    'vm: why it ended is unknown, because it exited with 0, and it reported no events',
  );
});

test('with a trace that saw no signal, none was it', () => {
  expect(judge({}).candidates).not.toContain('forced-stop');
  // What was sent before the trace was at work was not seen.
  const late = { ...EXIT, tracedSince: secondsAgo(10) };
  expect(judge({ exit: late }).candidates).toContain('forced-stop');
  expect(judge({ exit: { ...EXIT, tracedSince: secondsAgo(121) } }).candidates).not.toContain(
    'forced-stop',
  );
  expect(judge({ exit: late, ready: false }).candidates).toContain('forced-stop');
});

test('a second SHUTDOWN changes nothing', () => {
  const events = complete(GUEST_SHUTDOWN, STOP, HOST_SIGNAL);
  expect(judge({ ...events, intents: [intent()] })).toMatchObject({
    ...{ cause: 'guest-shutdown', userShutdown: true },
  });
});

test('what was before it was started again counts no more', () => {
  const events = complete(POWERDOWN, GUEST_SHUTDOWN, STOP, event('RESET'), RESUME, GUEST_SHUTDOWN);
  expect(judge(events)).toMatchObject({ cause: 'guest-shutdown', userShutdown: true });
  const revived = complete(GUEST_SHUTDOWN, STOP, event('RESET'), RESUME, HOST_SIGNAL);
  expect(judge(revived)).toMatchObject({ cause: 'forced-stop' });
});

test('a pause is no shutdown, and neither is a migration that we are about to make', () => {
  expect(judge(complete(STOP)).candidates).toEqual([
    ...judge(complete()).candidates,
    ...['migrated-away', 'saved'],
  ]);
  const intents = [intent({ what: 'migrate' })];
  // Whether it went so far, nobody knows: it may have been paused, and ended here.
  const stop = judge({ ...complete(STOP, HOST_SIGNAL), intents });
  expect(stop).toMatchObject({ cause: 'unknown', certainty: 'one-of', userShutdown: false });
  expect(stop.candidates).toEqual(expect.arrayContaining(['migrated-away', 'forced-stop']));
  const gone = { ...complete(STOP, HOST_SIGNAL), intents, lastStatus: 'postmigrate' };
  expect(judge(gone)).toMatchObject({ cause: 'migrated-away', initiator: 'manager' });
});

test('a power-down and a shutdown at once: what the hypervisor heard first counts', () => {
  expect(judge(complete(GUEST_SHUTDOWN, POWERDOWN))).toMatchObject({ userShutdown: true });
});

test('before QEMU 4.0 it only says whose side it was', () => {
  expect(judge(complete(event('SHUTDOWN', { guest: true })))).toMatchObject({ userShutdown: null });
  expect(judge(complete(event('SHUTDOWN', { guest: false })))).toMatchObject({
    userShutdown: false,
  });
  expect(judge(complete(event('SHUTDOWN')))).toMatchObject({ userShutdown: null });
  const later = event('SHUTDOWN', { guest: true, reason: 'something-new' });
  expect(judge(complete(later))).toMatchObject({ certainty: 'one-of' });
});

test('whoever came when it had shut down already does not know why', () => {
  const stop = judge({ events: [HOST_SIGNAL], initialStatus: 'shutdown' });
  expect(stop).toMatchObject({ certainty: 'one-of', userShutdown: null });
  expect(judge({ initialStatus: 'guest-panicked' })).toMatchObject({ cause: 'guest-panic' });
  expect(judge({ initialStatus: 'postmigrate' })).toMatchObject({ cause: 'migrated-away' });
});

test('its window that was closed, and its own failure, are as named', () => {
  expect(judge(complete(event('SHUTDOWN', { guest: false, reason: 'host-ui' })))).toMatchObject({
    ...{ cause: 'host-ui', userShutdown: false, certainty: 'sure' },
  });
  expect(judge(complete(event('SHUTDOWN', { guest: false, reason: 'host-error' })))).toMatchObject({
    ...{ cause: 'host-error', initiator: 'vmm' },
  });
});

test('nobody saw the end: what it said counts, then what it left behind', () => {
  const exit = null;
  expect(judge({ exit, ...complete(GUEST_SHUTDOWN) })).toMatchObject({ userShutdown: true });
  const left = { pidfile: true, socket: true };
  expect(judge({ exit, ...complete(), leftovers: left })).toMatchObject({
    ...{ certainty: 'one-of', userShutdown: false },
    candidates: expect.arrayContaining(['killed', 'oom-killed', 'vmm-crash']) as unknown,
  });
  const half = { pidfile: false, socket: true };
  expect(judge({ exit, ...complete(), leftovers: half }).candidates).toContain('vmm-exit');
  expect(judge({ exit, leftovers: left })).toMatchObject({ certainty: 'one-of' });
  expect(judge({ exit })).toMatchObject({ certainty: 'unknown', userShutdown: null });
});

test('a log says which signal it obeyed, and from whom, if that could be told', () => {
  expect(
    obeyedSignal(['qemu-system-x86_64: terminating on signal 15 from pid 42 (/bin/kill)']),
  ).toEqual({
    ...{ signal: 'SIGTERM', pid: 42, path: '/bin/kill' },
  });
  expect(obeyedSignal(['x', 'qemu: terminating on signal 2', ''])).toEqual({
    ...{ signal: 'SIGINT', pid: null, path: null },
  });
  expect(obeyedSignal(['qemu: terminating on signal 1 from pid 9 (<unknown process>)'])).toEqual({
    ...{ signal: 'SIGHUP', pid: 9, path: null },
  });
  expect(
    obeyedSignal(['terminating on signal', 'guest says: terminating on signal 15 now']),
  ).toBeNull();
  expect(judge({ obeyed: { signal: 'SIGTERM', pid: 42, path: null } })).toMatchObject({
    ...{ cause: 'forced-stop', certainty: 'likely' },
  });
});

test('our intents count by when the hypervisor obeyed, not by when its process was gone', () => {
  const minutesAgo = (minutes: number) => secondsAgo(minutes * 60);
  const stamped = (each: QmpEvent, at: Date) => ({ ...each, at });
  const quit = event('SHUTDOWN', { guest: false, reason: 'host-qmp-quit' });
  const intents = [intent({ what: 'quit', at: minutesAgo(2), deadline: minutesAgo(1.9) })];
  const events = complete(stamped(quit, minutesAgo(2)));
  expect(judge({ ...events, intents })).toMatchObject({ cause: 'manager-quit' });
  const unseen = { ...EXIT, how: 'unknown', exitCode: null, coreDumped: null } as never;
  expect(judge({ ...events, intents, exit: unseen })).toMatchObject({ cause: 'manager-quit' });

  // It had shut down before we pressed its button.
  const pressed = [intent({ what: 'powerdown', at: minutesAgo(1), deadline: NOW })];
  const before = [stamped(GUEST_SHUTDOWN, minutesAgo(2)), stamped(POWERDOWN, minutesAgo(1))];
  expect(judge({ ...complete(...before), intents: pressed })).toMatchObject({ userShutdown: true });

  // It has ignored our button for hours, and now its user shuts it down.
  const ignored = [intent({ what: 'powerdown', at: minutesAgo(300), deadline: minutesAgo(299) })];
  const later = [stamped(POWERDOWN, minutesAgo(300)), GUEST_SHUTDOWN];
  expect(judge({ ...complete(...later), intents: ignored })).toMatchObject({ userShutdown: true });
});

test('a machine that came from another host has not gone to one', () => {
  const migration = (status: string) => event('MIGRATION', { status });
  const arrived = complete(migration('active'), RESUME, migration('completed'));
  const exit = {
    ...EXIT,
    how: 'killed',
    exitCode: null,
    signal: 'SIGKILL',
    sender: sender('SIGKILL'),
  };
  expect(judge({ ...arrived, exit: exit as never })).toMatchObject({ cause: 'killed' });
  const gone = complete(migration('active'), STOP, migration('completed'), HOST_SIGNAL);
  expect(judge(gone)).toMatchObject({ cause: 'migrated-away' });
});

test('who was cut off does not know what came then', () => {
  const exit = {
    ...EXIT,
    how: 'killed',
    exitCode: null,
    signal: 'SIGKILL',
    sender: sender('SIGKILL'),
  };
  const cut = { exit: exit as never, initialStatus: 'running', mayLinger: true };
  expect(judge({ ...cut, eventsUnbroken: true })).toMatchObject({ certainty: 'sure' });
  const stop = judge({ ...cut, eventsUnbroken: false });
  expect(stop).toMatchObject({ cause: 'killed', certainty: 'likely', userShutdown: null });
});

test('a reason that nobody knows yet is told by its side, if it has one', () => {
  const later = (guest?: boolean) => event('SHUTDOWN', { guest, reason: 'something-new' });
  expect(judge(complete(later(true))).userShutdown).toBeNull();
  expect(judge(complete(later(false))).userShutdown).toBe(false);
  expect(judge(complete(later())).userShutdown).toBeNull();
});

test('what it was when we came is over when it runs again', () => {
  const again = { events: [event('RESET'), RESUME, GUEST_SHUTDOWN], eventsComplete: true };
  for (const initialStatus of ['guest-panicked', 'postmigrate', 'shutdown']) {
    expect(judge({ ...again, initialStatus })).toMatchObject({ cause: 'guest-shutdown' });
  }
});
