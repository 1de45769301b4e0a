// Lane: unit

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

test('a complete event stream proves that a guest powered itself off', () => {
  expect(judge(complete(GUEST_SHUTDOWN))).toMatchObject({
    ...{ cause: 'guest-shutdown', userShutdown: true, initiator: 'guest', certainty: 'sure' },
    candidates: ['guest-shutdown'],
  });
});

test('without a complete stream the power button may have been pressed, so the initiator is unknown', () => {
  const { cause, userShutdown, certainty, candidates } = judge({ events: [GUEST_SHUTDOWN] });
  expect({ cause, userShutdown, certainty }).toEqual({
    ...{ cause: 'unknown', userShutdown: null, certainty: 'one-of' },
  });
  expect(candidates).toContain('guest-shutdown');
  expect(candidates).toContain('other-powerdown');
});

test('a power button that exitwatch pressed is its own doing, whether the press was heard or not', () => {
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

test('an intent that was not delivered, or superseded, or has expired, does not explain the end', () => {
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

test('an unsettled intent may have been carried out', () => {
  for (const outcome of ['pending', 'expired', 'uncertain'] as const) {
    expect(judge({ intents: [intent({ outcome })] })).toMatchObject({
      ...{ cause: 'forced-stop', initiator: 'manager', userShutdown: null, certainty: 'likely' },
    });
  }
});

test('another process’s SIGTERM comes from the host, never from the user', () => {
  expect(judge(complete(HOST_SIGNAL))).toMatchObject({
    ...{ cause: 'forced-stop', userShutdown: false, initiator: 'host', certainty: 'sure' },
  });
});

test('a SIGTERM with an intent comes from exitwatch', () => {
  expect(judge({ ...complete(HOST_SIGNAL), intents: [intent()] })).toMatchObject({
    ...{ cause: 'forced-stop', userShutdown: false, initiator: 'manager', certainty: 'sure' },
  });
});

test('with only a signal, the guest may have powered off a moment before: both causes are candidates', () => {
  const exit = { ...EXIT, signalsReceived: [sender('SIGTERM')] };
  const stop = judge({ exit });
  expect(stop).toMatchObject({ cause: 'forced-stop', userShutdown: null, certainty: 'likely' });
  expect(stop.candidates).toEqual(expect.arrayContaining(['forced-stop', 'guest-shutdown']));
});

test('with only exit 0 the cause is unknown, and the user is not blamed', () => {
  const stop = judge({ exit: { ...EXIT, traced: false } });
  expect(stop).toMatchObject({ cause: 'unknown', userShutdown: null, certainty: 'one-of' });
  expect(stop.candidates).toContain('guest-shutdown');
  expect(stop.candidates).toContain('forced-stop');
  expect(stop.summary).toBe(
    'vm: why it ended is unknown, because it exited with 0, and it reported no events',
  );
});

test('a trace that saw no signal rules signals out', () => {
  expect(judge({}).candidates).not.toContain('forced-stop');
  // A signal before the trace was running would not have been seen.
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

test('events before a restart of the guest no longer count', () => {
  const events = complete(POWERDOWN, GUEST_SHUTDOWN, STOP, event('RESET'), RESUME, GUEST_SHUTDOWN);
  expect(judge(events)).toMatchObject({ cause: 'guest-shutdown', userShutdown: true });
  const revived = complete(GUEST_SHUTDOWN, STOP, event('RESET'), RESUME, HOST_SIGNAL);
  expect(judge(revived)).toMatchObject({ cause: 'forced-stop' });
});

test('a pause is not a shutdown, and neither is a planned migration', () => {
  expect(judge(complete(STOP)).candidates).toEqual([
    ...judge(complete()).candidates,
    ...['migrated-away', 'saved'],
  ]);
  const intents = [intent({ what: 'migrate' })];
  // The migration may not have got that far: the guest may have been paused, and ended here.
  const stop = judge({ ...complete(STOP, HOST_SIGNAL), intents });
  expect(stop).toMatchObject({ cause: 'unknown', certainty: 'one-of', userShutdown: false });
  expect(stop.candidates).toEqual(expect.arrayContaining(['migrated-away', 'forced-stop']));
  const gone = { ...complete(STOP, HOST_SIGNAL), intents, lastStatus: 'postmigrate' };
  expect(judge(gone)).toMatchObject({ cause: 'migrated-away', initiator: 'manager' });
});

test('of a power-down and a shutdown at the same time, the first that the hypervisor heard counts', () => {
  expect(judge(complete(GUEST_SHUTDOWN, POWERDOWN))).toMatchObject({ userShutdown: true });
});

test('before QEMU 4.0 a SHUTDOWN says only which side it came from', () => {
  expect(judge(complete(event('SHUTDOWN', { guest: true })))).toMatchObject({ userShutdown: null });
  expect(judge(complete(event('SHUTDOWN', { guest: false })))).toMatchObject({
    userShutdown: false,
  });
  expect(judge(complete(event('SHUTDOWN')))).toMatchObject({ userShutdown: null });
  const later = event('SHUTDOWN', { guest: true, reason: 'something-new' });
  expect(judge(complete(later))).toMatchObject({ certainty: 'one-of' });
});

test('a client that connects after the shutdown does not know why', () => {
  const stop = judge({ events: [HOST_SIGNAL], initialStatus: 'shutdown' });
  expect(stop).toMatchObject({ certainty: 'one-of', userShutdown: null });
  expect(judge({ initialStatus: 'guest-panicked' })).toMatchObject({ cause: 'guest-panic' });
  expect(judge({ initialStatus: 'postmigrate' })).toMatchObject({ cause: 'migrated-away' });
});

test('a closed window and an error of the hypervisor are reported by name', () => {
  expect(judge(complete(event('SHUTDOWN', { guest: false, reason: 'host-ui' })))).toMatchObject({
    ...{ cause: 'host-ui', userShutdown: false, certainty: 'sure' },
  });
  expect(judge(complete(event('SHUTDOWN', { guest: false, reason: 'host-error' })))).toMatchObject({
    ...{ cause: 'host-error', initiator: 'vmm' },
  });
});

test('if nobody saw the end, the events count first, then the files left behind', () => {
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

test('a log names the signal that QEMU obeyed, and its sender if QEMU knew it', () => {
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

test('an intent counts by when the hypervisor obeyed, not by when its process was gone', () => {
  const minutesAgo = (minutes: number) => secondsAgo(minutes * 60);
  const stamped = (each: QmpEvent, at: Date) => ({ ...each, at });
  const quit = event('SHUTDOWN', { guest: false, reason: 'host-qmp-quit' });
  const intents = [intent({ what: 'quit', at: minutesAgo(2), deadline: minutesAgo(1.9) })];
  const events = complete(stamped(quit, minutesAgo(2)));
  expect(judge({ ...events, intents })).toMatchObject({ cause: 'manager-quit' });
  const unseen = { ...EXIT, how: 'unknown', exitCode: null, coreDumped: null } as never;
  expect(judge({ ...events, intents, exit: unseen })).toMatchObject({ cause: 'manager-quit' });

  // It had shut down before exitwatch pressed its button.
  const pressed = [intent({ what: 'powerdown', at: minutesAgo(1), deadline: NOW })];
  const before = [stamped(GUEST_SHUTDOWN, minutesAgo(2)), stamped(POWERDOWN, minutesAgo(1))];
  expect(judge({ ...complete(...before), intents: pressed })).toMatchObject({ userShutdown: true });

  // It has ignored exitwatch's press for hours, and now its user shuts it down.
  const ignored = [intent({ what: 'powerdown', at: minutesAgo(300), deadline: minutesAgo(299) })];
  const later = [stamped(POWERDOWN, minutesAgo(300)), GUEST_SHUTDOWN];
  expect(judge({ ...complete(...later), intents: ignored })).toMatchObject({ userShutdown: true });
});

test('a machine that came from another host has not migrated away', () => {
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

test('a client that was cut off does not know what came afterwards', () => {
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

test('an unknown reason is judged by its side, if it has one', () => {
  const later = (guest?: boolean) => event('SHUTDOWN', { guest, reason: 'something-new' });
  expect(judge(complete(later(true))).userShutdown).toBeNull();
  expect(judge(complete(later(false))).userShutdown).toBe(false);
  expect(judge(complete(later())).userShutdown).toBeNull();
});

test('the state at the connection no longer counts once the guest runs again', () => {
  const again = { events: [event('RESET'), RESUME, GUEST_SHUTDOWN], eventsComplete: true };
  for (const initialStatus of ['guest-panicked', 'postmigrate', 'shutdown']) {
    expect(judge({ ...again, initialStatus })).toMatchObject({ cause: 'guest-shutdown' });
  }
});
