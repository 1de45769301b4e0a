import type { Initiator } from '../../../src/vm';

import { LATE_MS, press, pressers, restFromPresses } from './interludes';
import { MINUTE, OTHER_PID, OUR_PID, SECOND, type Machine, type Presser } from './machine';
import { byOthers, byUser, type TrueCause } from './truth';

function guestShutsDown(machine: Machine): void {
  machine.shutDown('guest-shutdown');
  // A stop that came too late, or at the same time, which the witnesses see.
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

export function userPowersOff(machine: Machine): void {
  restFromPresses(machine);
  machine.say('the user powers off');
  machine.decide('user powers off', byUser('guest-shutdown'));
  guestShutsDown(machine);
}

export function userHibernates(machine: Machine): void {
  restFromPresses(machine);
  machine.say('the user hibernates');
  machine.tell('SUSPEND_DISK');
  machine.decide('user hibernates', byUser('guest-hibernate'));
  guestShutsDown(machine);
}

/** This cannot be told from a guest that obeyed. */
export function powerOffSoonAfterPress(machine: Machine): void {
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

export function pressObeyed(machine: Machine): void {
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
    const last = (pressed?.at ?? 0) + LATE_MS - SECOND;
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

/** Any of the recent pressers may have been the one. */
export function obey(machine: Machine): void {
  const live = machine.pressesWithin(LATE_MS + SECOND);
  const causes = [...new Set(live.map(({ by }) => PRESSED[by][0]))];
  const initiators = [...new Set(live.map(({ by }) => PRESSED[by][1]))];
  const last = live.at(-1)?.by ?? 'others';
  machine.decide(`obeys ${last}`, {
    ...{ causes, initiators, user: false },
    restart: 'never',
  });
  guestShutsDown(machine);
}

export function agentHibernates(machine: Machine): void {
  machine.say('somebody else has its agent hibernate it');
  machine.tell('SUSPEND_DISK');
  machine.decide('hibernates for an agent', {
    ...byOthers(['other-powerdown', 'guest-hibernate']),
    ...{ initiators: ['host', 'guest'], restart: 'never' },
  });
  guestShutsDown(machine);
}
