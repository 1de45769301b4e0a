import { migration, saving } from './departures';
import { MINUTE, SECOND, type Machine } from './machine';
import {
  agentHibernates,
  powerOffSoonAfterPress,
  pressObeyed,
  userHibernates,
  userPowersOff,
} from './power-offs';
import { endedFromOutside, endProcess, itsOwnFault, ourStop } from './process-ends';
import { byGuest, byOthers, byVmm } from './truth';

type Ending = (machine: Machine) => void;

/** Ends a running machine, or brings it to a state in which it only needs to be ended. */
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
  // The machine is off or gone, but its process is still there.
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
