// Lane: patient

import { ExitMonitor, type ExitEvent, type SignalSender } from '../../../src/index';
import { unknownExit } from '../../../src/events/unknown-exit';
import { NOWHERE, whereaboutsOf } from '../../../src/where/whereabouts';
import {
  decideRestart,
  type RestartRules,
  type StopIntent,
} from '../../../src/supervisor/services/restart-policy';
import { kill } from '../../support/kill';
import { itAsRootOfHost } from '../../support/privilege';
import { shell, sleeper, SupervisorHost } from '../../support/supervisor';

const base = unknownExit(
  {
    id: 'a',
    pid: 7,
    startedAt: new Date(0),
    exitedAt: new Date(1),
    uncertaintyMs: 0,
    source: 'keeper',
  },
  'gone-while-unobserved',
);

const exited = (exitCode: number): ExitEvent => ({
  ...base,
  how: 'exited',
  exitCode,
  signal: null,
  coreDumped: false,
  unknownReason: null,
});

const killed = (more: Partial<ExitEvent> = {}): ExitEvent =>
  ({
    ...base,
    how: 'killed',
    exitCode: null,
    signal: 'SIGTERM',
    coreDumped: false,
    unknownReason: null,
    ...more,
  }) as ExitEvent;

const sender = (more: object = {}): SignalSender => ({
  signal: 'SIGTERM',
  sentAt: new Date(0),
  origin: 'kill',
  ...{ pid: 9, startedAt: null },
  name: 'kill',
  uid: 1000,
  cgroup: '/system.slice/admin.service',
  ...whereaboutsOf('/system.slice/admin.service'),
  ...{ onBehalf: false, onBehalfReason: null, likelyClients: null, commandLine: null },
  ...{ program: null, ancestors: [{ pid: 8, name: 'a-name-of-more-', cgroup: null, ...NOWHERE }] },
  ...more,
});

const rules = (more: Partial<RestartRules> = {}): RestartRules => ({
  restart: 'unless-asked',
  successExitCodes: [0],
  askedBy: [],
  onUnknown: 'restart',
  ...more,
});

const intent = (purpose: StopIntent['purpose']): StopIntent => ({ purpose, at: '', why: null });

describe('restart', () => {
  it.each([exited(0), exited(1), killed(), base])('always follows any end (%#)', (exit) => {
    expect(decideRestart(rules({ restart: 'always' }), exit, null)).toMatchObject({
      restart: true,
      reason: 'always',
    });
  });

  it.each([exited(0), exited(1), killed(), base])('never follows no end (%#)', (exit) => {
    expect(decideRestart(rules({ restart: 'never' }), exit, null)).toMatchObject({
      restart: false,
      reason: 'never',
    });
  });

  it('on-failure goes by the exit codes, and takes a signal for a failure', () => {
    const onFailure = rules({ restart: 'on-failure', successExitCodes: [0, 3] });
    const ends = [exited(0), exited(3), exited(1), killed()];
    expect(ends.map((exit) => decideRestart(onFailure, exit, null).restart)).toEqual([
      ...[false, false, true, true],
    ]);
  });

  it.each(['restart', 'stay'] as const)(
    'on-failure does what it is told if unknown: %s',
    (then) => {
      const decision = decideRestart(rules({ restart: 'on-failure', onUnknown: then }), base, null);
      expect(decision).toMatchObject({ restart: then === 'restart', reason: 'not-known' });
    },
  );

  it('unless-asked takes only the intent to stop for a request', () => {
    const ask = (purpose: StopIntent['purpose']) =>
      decideRestart(rules(), killed(), intent(purpose)).restart;
    expect([ask('stop'), ask('restart'), ask('health')]).toEqual([false, true, true]);
    expect(decideRestart(rules(), killed({ sender: sender() }), null).reason).toBe('not-asked');
  });

  it.each(['stop', 'restart', 'health'] as const)(
    'what had ended before we asked for its %s did not end because of that',
    (purpose) => {
      const exit = exited(3);
      const asked = (ms: number) => ({
        ...{ purpose, why: null },
        at: new Date(exit.exitedAt.getTime() + ms).toISOString(),
      });
      const decide = (ms: number) => decideRestart(rules(), exit, asked(ms));
      const whole = decide(0);
      expect(whole.evidence.intent).toEqual(asked(0));
      const late = decide(1);
      expect(late).toMatchObject({ restart: whole.restart, evidence: { intent: null } });
      const because = {
        stop: 'it exited with 3 before we were asked to stop it',
        restart: 'it exited with 3 before we were asked to restart it',
        health: 'it exited with 3, and nobody asked',
      };
      expect(late.because).toBe(because[purpose]);
    },
  );

  it.each([{ uid: 1000 }, { unit: 'admin.service' }, { ancestor: 'a-name-of-more-than-15' }])(
    'unless-asked knows who may ask: %j',
    (by) => {
      const mayAsk = rules({ askedBy: [by] });
      const exit = killed({ sender: sender(), traced: true });
      expect(decideRestart(mayAsk, exit, null)).toMatchObject({
        restart: false,
        reason: 'asked-by-signal',
        evidence: { sender: { pid: 9 }, traced: true },
      });
      const other = sender({ uid: 0, cgroup: '/other.service', ancestors: [] });
      expect(decideRestart(mayAsk, killed({ sender: other }), null).reason).toBe('not-asked');
    },
  );

  const ofUser = (uid: number) => `/user.slice/user-${uid}.slice/user@${uid}.service`;

  it.each([
    ['a service of the system', '/system.slice/admin.service', false],
    ['a cgroup in it', '/system.slice/admin.service/worker', false],
    ['our own user’s', `${ofUser(process.getuid?.() ?? 0)}/app.slice/admin.service`, false],
    ['another user’s', `${ofUser(4711)}/app.slice/admin.service`, true],
    ['a cgroup that a user named so', `${ofUser(4711)}/admin.service`, true],
    ['a container’s', `/docker/${'ab'.repeat(32)}/system.slice/admin.service`, true],
    ['a cgroup of another service', '/system.slice/web.service/admin.service', true],
  ])(
    'unless-asked takes the unit of a sender from where only its owner can be: %s',
    (_, cgroup, restart) => {
      const mayAsk = rules({ askedBy: [{ unit: 'admin.service' }] });
      const exit = killed({ sender: sender({ cgroup }), traced: true });
      expect(decideRestart(mayAsk, exit, null).restart).toBe(restart);
    },
  );

  it('unless-asked goes by who sent the signal before the process raised it again', () => {
    const own = sender({ pid: 7, uid: 0 });
    const exit = killed({ sender: own, raisedAfter: sender() });
    expect(decideRestart(rules({ askedBy: [{ uid: 1000 }] }), exit, null).restart).toBe(false);
  });

  it('unless-asked does not count a signal that did not end it', () => {
    const exit = { ...exited(0), signalsReceived: [sender()], traced: true };
    expect(decideRestart(rules({ askedBy: [{ uid: 1000 }] }), exit, null)).toMatchObject({
      restart: true,
      reason: 'not-asked',
    });
  });

  it('unless-asked says that nobody asked if the kernel killed it', () => {
    const byKernel: SignalSender = {
      signal: 'SIGKILL',
      sentAt: new Date(0),
      origin: 'kernel',
      pid: null,
    };
    const exit = killed({ sender: byKernel, traced: true });
    expect(decideRestart(rules({ askedBy: [{ uid: 0 }] }), exit, null).reason).toBe('not-asked');
  });

  it.each(['restart', 'stay'] as const)('unless-asked without a trace: %s', (onUnknown) => {
    const untraced = decideRestart(rules({ askedBy: [{ uid: 0 }], onUnknown }), killed(), null);
    expect(untraced).toMatchObject({
      restart: onUnknown === 'restart',
      reason: 'not-known',
      because: 'who sent SIGTERM is not known',
    });
  });
});

describe('a service that ends by itself', () => {
  it('is not started again after a success', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(shell('job', 'exit 3', { restart: 'on-failure', successExitCodes: [3] }));
    const { lastEnd } = await host.phase('job', 'ended');
    expect(lastEnd).toMatchObject({ how: 'exited', exitCode: 3, reason: 'success' });
    expect(await host.event('stopped')).toMatchObject({ service: 'job', phase: 'ended' });
  });

  it('KB-10 KB-27 stays ended after a restart of the supervisor', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(shell('job', 'exit 0', { restart: 'never' }));
    await host.phase('job', 'ended');
    expect(await host.reopen()).toMatchObject({ adopted: [], orphans: [] });
    await host.apply(shell('job', 'exit 0', { restart: 'never' }));
    expect(host.status('job')).toMatchObject({ phase: 'ended', run: null });
    expect(host.of('started')).toHaveLength(1);
  });

  itAsRootOfHost('is not started again if somebody asked who may, as the trace saw', async () => {
    await using monitor = new ExitMonitor();
    await monitor.start();
    await using host = await SupervisorHost.open({ monitor });
    await host.apply(
      sleeper('mine', { askedBy: [{ uid: 0 }] }),
      sleeper('other', { askedBy: [{ uid: 1 }] }),
    );
    for (const name of ['mine', 'other']) {
      const { pid } = await host.phase(name, 'running');
      kill(pid, 'SIGTERM');
    }
    const { lastEnd } = await host.phase('mine', 'ended');
    expect(lastEnd).toMatchObject({ reason: 'asked-by-signal', signal: 'SIGTERM' });
    await host.event('started', 3);
    const exits = host.of('exit');
    expect(exits.find(({ service }) => service === 'other')).toMatchObject({
      traced: true,
      sender: { pid: process.pid },
      decision: { restart: true, reason: 'not-asked', evidence: { traced: true } },
    });
  });
});
