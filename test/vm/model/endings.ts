import type { SignalName } from '../../../src';
import type { Initiator } from '../../../src/vm';

import { LATE_MS, press, pressers, restFromPresses } from './interludes';
import { ITS_PID, MINUTE, OTHER_PID, OUR_PID, SECOND, type Machine, type Presser } from './machine';
import {
  byGuest,
  byOthers,
  byUs,
  byUser,
  byVmm,
  byAttack,
  goneAway,
  type TrueCause,
  type Truth,
} from './truth';

type Ending = (machine: Machine) => void;

/** How one that runs comes to its end, or comes to where it only has to be ended. */
export function ending(machine: Machine): void {
  const { options, random } = machine;
  const all: [number, Ending][] = [
    [8, userPowersOff],
    [1, userHibernates],
    [8, pressObeyed],
    [2, powerOffSoonAfterPress],
    [3, ourStop],
    [8, migration],
    [4, saving],
    [8, endedFromOutside],
    [3, itsOwnFault],
    [1, hostsWord],
    [2, endedWhilePaused],
  ];
  if (options.noReboot) all.push([2, rebootThatEndsIt], [1, resetThatEndsIt]);
  if (options.panic !== 'run') all.push([1, panic]);
  if (options.watchdog === 'poweroff') all.push([3, watchdogPowersOff]);
  if (options.debugExit) all.push([4, debugExit]);
  if (options.agent === 'open') all.push([1, agentHibernates]);
  random.weighted(all.map(([weight, play]) => [weight, play] as const))(machine);
  // It is off, or gone, and its process is still there.
  if (!machine.isGone) {
    const span = random.pick([SECOND, MINUTE, 100 * MINUTE]);
    machine.wait(span / 2, span * 2);
    endProcess(machine);
  }
}

function endedWhilePaused(machine: Machine): void {
  machine.say('somebody pauses it');
  machine.pause('paused');
  machine.wait(SECOND, 10 * MINUTE);
  machine.labels.add('was paused');
  endProcess(machine);
}

/** By those who look after processes. */
export function endProcess(machine: Machine): void {
  machine.random.weighted<Ending>([
    [6, endedFromOutside],
    [2, ourStop],
    [1, itsOwnFault],
  ])(machine);
}

function guestShutsDown(machine: Machine): void {
  machine.shutDown('guest-shutdown');
  // Somebody was about to stop it: too late, or at the same time, which the witnesses see.
  if (!machine.isGone || !machine.random.chance(0.2)) return;
  const end = machine.end;
  if (end === null) return;
  machine.now = end.at - 1;
  const what = machine.random.pick(['SIGTERM', 'SIGTERM', 'quit', 'powerdown', 'others'] as const);
  machine.labels.add(what === 'powerdown' ? 'pressed too late' : 'stopped too late');
  if (what === 'others') {
    machine.say('somebody sends SIGTERM when it has powered off already');
    machine.signal('SIGTERM', { pid: OTHER_PID });
  } else {
    machine.say(`we want to stop it (${what}) when it has powered off already`);
    machine.intend(what, 5 * SECOND, what === 'SIGTERM' ? 'delivered' : 'superseded');
    if (what === 'SIGTERM') machine.signal('SIGTERM', { pid: OUR_PID });
  }
  end.at = Math.max(end.at, machine.now);
}

function userPowersOff(machine: Machine): void {
  restFromPresses(machine);
  machine.say('the user powers off');
  machine.decide('user powers off', byUser('guest-shutdown'));
  guestShutsDown(machine);
}

function userHibernates(machine: Machine): void {
  restFromPresses(machine);
  machine.say('the user hibernates');
  machine.tell('SUSPEND_DISK');
  machine.decide('user hibernates', byUser('guest-hibernate'));
  guestShutsDown(machine);
}

/** Nobody can tell that from a guest that has obeyed. */
function powerOffSoonAfterPress(machine: Machine): void {
  press(machine, machine.random.pick(pressers(machine)));
  machine.wait(SECOND, LATE_MS);
  machine.say('the guest has ignored that; the user powers off');
  machine.decide('user powers off soon after a press', {
    ...byUser('guest-shutdown'),
    user: 'undecidable',
  });
  guestShutsDown(machine);
}

const PRESSED: Record<Presser, readonly [TrueCause, Initiator]> = {
  us: ['admin-powerdown', 'manager'],
  'our agent': ['admin-powerdown', 'manager'],
  others: ['other-powerdown', 'host'],
  "others' agent": ['other-powerdown', 'host'],
  watchdog: ['watchdog-powerdown', 'guest'],
};

function pressObeyed(machine: Machine): void {
  const { options, random } = machine;
  const by = random.pick(pressers(machine));
  press(machine, by);
  const mayReset = !options.noReboot && !by.endsWith('agent');
  const fate = random.weighted([
    [4, 'obeys'],
    [2, 'late'],
    [mayReset ? 2 : 0, 'updates'],
    [1, 'again'],
  ] as const);
  const pressed = machine.presses.at(-1);
  const deadline = pressed?.deadline ?? machine.now;
  if (fate === 'again') {
    machine.wait(LATE_MS + SECOND, 15 * MINUTE);
    press(machine, random.pick(pressers(machine)));
    machine.wait(100, 9 * SECOND);
    machine.labels.add('pressed again');
  } else if (fate === 'late') {
    const last = (pressed?.at ?? 0) + LATE_MS;
    machine.now = random.between(Math.min(deadline + 2 * SECOND, last), last);
    machine.labels.add('obeyed late');
  } else {
    machine.wait(50, 8 * SECOND);
    if (fate === 'updates') {
      machine.say('the guest installs updates, and reboots for them');
      machine.tell('RESET', { guest: true, reason: 'guest-reset' });
      machine.wait(50, 9 * SECOND);
      machine.labels.add('reset before it obeyed');
    }
  }
  machine.say('the guest obeys');
  obey(machine);
}

/** Of all who have pressed of late, any may have been the one. */
function obey(machine: Machine): void {
  const live = machine.pressesWithin(LATE_MS);
  const causes = [...new Set(live.map(({ by }) => PRESSED[by][0]))];
  const initiators = [...new Set(live.map(({ by }) => PRESSED[by][1]))];
  const last = live.at(-1)?.by ?? 'others';
  machine.decide(`obeys ${last}`, {
    ...{ causes, initiators, user: false },
    restart: 'never',
  });
  guestShutsDown(machine);
}

function agentHibernates(machine: Machine): void {
  machine.say('somebody else has its agent hibernate it');
  machine.tell('SUSPEND_DISK');
  machine.decide('hibernates for an agent', {
    ...byOthers(['other-powerdown', 'guest-hibernate']),
    ...{ initiators: ['host', 'guest'], restart: 'never' },
  });
  guestShutsDown(machine);
}

function rebootThatEndsIt(machine: Machine): void {
  machine.say('the guest reboots, or has a triple fault');
  machine.decide('reboots with -no-reboot', byGuest('guest-reboot'));
  machine.shutDown('guest-reset');
}

function resetThatEndsIt(machine: Machine): void {
  machine.say('somebody resets it');
  machine.decide('is reset with -no-reboot', byOthers('host-reset'));
  machine.shutDown('host-qmp-system-reset');
}

function panic(machine: Machine): void {
  const { panic: action, noShutdown } = machine.options;
  machine.say('the guest panics');
  machine.decide('panics', byGuest('guest-panic'));
  if (action === 'pause' || (noShutdown && action === 'poweroff')) {
    machine.tell('GUEST_PANICKED', { action: 'pause' });
    machine.pause('guest-panicked');
    return;
  }
  machine.tell('GUEST_PANICKED', { action: action === 'run' ? 'run' : 'poweroff' });
  machine.tell('SHUTDOWN', { guest: true, reason: 'guest-panic' });
  machine.wait(1, 5);
  machine.exit(action === 'exit-failure' ? 1 : 0);
}

function watchdogPowersOff(machine: Machine): void {
  machine.say('its watchdog expires, and ends it');
  machine.decide('watchdog ends it', byGuest('guest-watchdog'));
  machine.tell('WATCHDOG', { action: 'poweroff' });
  machine.exit(0, true);
}

function debugExit(machine: Machine): void {
  machine.say('the guest writes to isa-debug-exit');
  machine.decide('isa-debug-exit', {
    ...byVmm('vmm-exit', ['guest', 'vmm']),
    user: 'either',
  });
  const isNew = machine.options.version === '10.0';
  if (isNew) machine.tell('SHUTDOWN', { guest: true, reason: 'guest-shutdown' });
  machine.exit(2 * machine.random.between(0, 100) + 1, !isNew);
}

/** A machine that was paused before says STOP no more. */
function goAway(machine: Machine): void {
  const { options, random } = machine;
  const told = (status: string) => {
    if (options.migrationEvents) machine.tell('MIGRATION', { status });
  };
  if (random.chance(0.15)) {
    machine.say('it is paused for that');
    machine.pause('paused');
    machine.wait(100, SECOND);
    machine.labels.add('paused before it went');
  }
  told('setup');
  told('active');
  machine.wait(SECOND, random.pick([10 * SECOND, 5 * MINUTE]));
  if (machine.status === 'running') machine.pause('postmigrate');
  else machine.become('postmigrate');
  told('completed');
  if (!options.migrationEvents) machine.labels.add('unannounced');
}

function migration(machine: Machine): void {
  const isOurs = machine.random.chance(0.5);
  machine.say(`${isOurs ? 'we migrate' : 'somebody else migrates'} it to another host`);
  if (isOurs) machine.intend('migrate', machine.random.pick([10 * MINUTE, MINUTE]));
  goAway(machine);
  machine.say('there it goes on');
  const who = isOurs ? 'us' : 'others';
  machine.decide(`migrated by ${who}`, away(machine, ['migrated-away', 'saved'], who));
}

/**
 * Who migrates a machine is its manager, for all who look on; who saves it to a file is not known. One
 * that failed, not long before, may have been tried again by whoever it was.
 */
function away(machine: Machine, causes: readonly TrueCause[], by: 'us' | 'others'): Truth {
  const isOurs =
    causes[0] === 'migrated-away' ||
    machine.intents.some(
      ({ what, deadline }) => what === 'migrate' && deadline + LATE_MS >= machine.now,
    );
  const truth = goneAway(causes, by);
  return isOurs && by === 'others' ? { ...truth, initiators: ['manager', 'host'] } : truth;
}

function saving(machine: Machine): void {
  const { random } = machine;
  if (random.chance(0.3)) {
    machine.say('somebody else suspends it to a disk');
    machine.pause('save-vm');
    machine.wait(SECOND, 10 * SECOND);
    machine.decide('suspended to a disk', goneAway(['saved', 'migrated-away'], 'others'));
    return;
  }
  const isOurs = random.chance(0.5);
  machine.say(`${isOurs ? 'we save' : 'somebody else saves'} it to a file`);
  if (isOurs) machine.intend('migrate', 10 * MINUTE);
  goAway(machine);
  const who = isOurs ? 'us' : 'others';
  machine.decide(`saved by ${who}`, away(machine, ['saved', 'migrated-away'], who));
}

/** Its button, then quit, then SIGTERM, then SIGKILL: the first that works is the last. */
function ourStop(machine: Machine): void {
  const { options, random } = machine;
  const isRunning = machine.status === 'running';
  const works = random.pick(['quit', 'SIGTERM', 'SIGKILL'] as const);
  if (random.chance(0.8)) {
    press(machine, 'us');
    machine.say(isRunning ? 'and the guest ignores that' : 'which is of no use: it does not run');
    machine.now = machine.presses.at(-1)?.deadline ?? machine.now;
    // It has obeyed after all, when we had given it up.
    if (isRunning && random.chance(0.1)) {
      machine.say('the guest obeys after all');
      machine.say('we tell it to quit at the same time');
      machine.intend('quit', 5 * SECOND);
      obey(machine);
      return;
    }
  }
  if (options.qmp) {
    machine.say('we tell it to quit');
    machine.intend('quit', 5 * SECOND);
    if (works === 'quit') {
      quits(machine, 'us');
      return;
    }
    machine.wait(5 * SECOND);
  }
  machine.say('we send SIGTERM');
  machine.intend('SIGTERM', 5 * SECOND);
  const sender = machine.signal('SIGTERM', { pid: OUR_PID });
  if (works !== 'SIGKILL') {
    machine.decide('SIGTERM of ours', byUs('forced-stop'));
    machine.obey(sender);
    return;
  }
  machine.wait(5 * SECOND);
  killed(machine, 'us', 'SIGKILL');
}

function quits(machine: Machine, by: 'us' | 'others'): void {
  const isOurs = by === 'us';
  machine.decide(`quit of ${by}`, isOurs ? byUs('manager-quit') : byOthers('other-quit'));
  machine.wait(1, 20);
  machine.shutDown('host-qmp-quit');
}

function killed(machine: Machine, by: 'us' | 'others', signal: SignalName): void {
  const isOurs = by === 'us';
  machine.say(`${isOurs ? 'we send' : 'somebody else sends'} ${signal}`);
  if (isOurs) machine.intend(signal, 5 * SECOND);
  machine.decide(`${signal} of ${by}`, isOurs ? byUs('killed') : byAttack('killed'));
  const pid = isOurs ? OUR_PID : OTHER_PID;
  if (signal === 'SIGBUS') {
    const caught = machine.signal(signal, { pid });
    machine.dieOf(machine.signal(signal, { pid: ITS_PID, origin: 'tgkill' }), false, caught);
    return;
  }
  // It has no time to obey that.
  if (!isOurs && machine.random.chance(0.1)) machine.signal('SIGTERM', { pid });
  machine.dieOf(machine.signal(signal, { pid }));
}

/** One act, of ours or of others. */
function endedFromOutside(machine: Machine): void {
  const { options, random } = machine;
  const by = random.chance(0.3) ? 'us' : 'others';
  const isOurs = by === 'us';
  const kind = random.weighted([
    [options.qmp ? 4 : 0, 'quit'],
    [4, 'request'],
    [3, 'kill'],
    [1, 'hang-up'],
  ] as const);
  if (kind === 'kill') {
    const signal = random.pick([
      ...(['SIGKILL', 'SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGQUIT'] as const),
    ]);
    killed(machine, by, isOurs ? 'SIGKILL' : signal);
    return;
  }
  if (kind === 'quit') {
    machine.say(`${isOurs ? 'we tell' : 'somebody else tells'} it to quit`);
    if (isOurs) machine.intend('quit', 5 * SECOND, random.pick(['delivered', 'pending']));
    stall(machine, isOurs);
    quits(machine, by);
    return;
  }
  if (kind === 'hang-up') {
    machine.say('its terminal hangs up');
    machine.decide('terminal hangs up', {
      ...byOthers('forced-stop'),
      initiators: ['host', 'kernel'],
    });
    machine.obey(machine.signal('SIGHUP', { pid: null }));
    return;
  }
  const signal = isOurs
    ? 'SIGTERM'
    : random.pick(['SIGTERM', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const);
  machine.say(`${isOurs ? 'we send' : 'somebody else sends'} ${signal}`);
  if (isOurs) machine.intend(signal, 5 * SECOND, random.pick(['delivered', 'pending']));
  machine.decide(`${signal} of ${by}`, isOurs ? byUs('forced-stop') : byOthers('forced-stop'));
  const sender = machine.signal(signal, { pid: isOurs ? OUR_PID : OTHER_PID });
  stall(machine, isOurs);
  machine.obey(sender);
}

/** A hypervisor that waits for a disk obeys when it is done with that. */
function stall(machine: Machine, isOurs: boolean): void {
  if (!isOurs || !machine.random.chance(0.05)) return;
  machine.wait(7 * SECOND, 40 * SECOND);
  machine.say('it was busy, and comes to that now');
  machine.labels.add('was busy');
}

function itsOwnFault(machine: Machine): void {
  const { random } = machine;
  switch (random.pick(['oom', 'fault', 'abort', 'exit'])) {
    case 'oom':
      machine.say('the kernel is out of memory, and kills it');
      machine.decide('out of memory', byAttack('oom-killed', 'kernel'));
      machine.dieOf(machine.signal('SIGKILL', { pid: null, origin: 'kernel' }), true);
      break;
    case 'fault':
      machine.say('the hypervisor has a fault');
      machine.decide('hypervisor crashes', byAttack('vmm-crash', 'vmm'));
      machine.dieOf(machine.signal('SIGSEGV', { pid: null, origin: 'fault' }));
      break;
    case 'abort':
      machine.say('the hypervisor aborts');
      machine.decide('hypervisor crashes', byAttack('vmm-crash', 'vmm'));
      machine.dieOf(machine.signal('SIGABRT', { pid: ITS_PID, origin: 'tgkill' }));
      break;
    default:
      machine.say('the hypervisor gives up, and exits with 1');
      machine.decide('hypervisor exits', byVmm('vmm-exit'));
      machine.exit(1, true);
  }
}

function hostsWord(machine: Machine): void {
  if (machine.random.chance(0.5)) {
    machine.say('its window is closed');
    machine.decide('window closed', byOthers('host-ui'));
    machine.shutDown('host-ui');
  } else {
    machine.say('the hypervisor has an error, and says so');
    machine.decide('host error', byVmm('host-error'));
    machine.shutDown('host-error');
  }
}
