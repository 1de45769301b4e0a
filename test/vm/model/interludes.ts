import {
  DAY,
  HOUR,
  MINUTE,
  OTHER_PID,
  SECOND,
  type Intended,
  type Machine,
  type Presser,
} from './machine';

/** A guest that obeys at all does so within this time: some need minutes. */
export const LATE_MS = 5 * MINUTE;

/**
 * After this time a press no longer explains a power-off. In between it is a matter of opinion, so
 * the model's users power off before or after that range.
 */
export const FORGOTTEN_MS = DAY;

/** How long exitwatch waits for a guest and for the hypervisor. */
const POWERDOWN_MS = 60 * SECOND;

const NAMES: Record<Presser, string> = {
  us: 'we press its power button',
  others: 'somebody else presses its power button',
  watchdog: 'its watchdog expires, and presses its power button',
  'our agent': 'we have its agent power it off',
  "others' agent": 'somebody else has its agent power it off',
};

/** Everyone who could press this machine's power button. */
export function pressers({ options }: Machine): [Presser, ...Presser[]] {
  const found: [Presser, ...Presser[]] = ['us', 'others'];
  if (options.watchdog === 'shutdown') found.push('watchdog');
  if (options.agent !== 'none') found.push('our agent');
  if (options.agent === 'open') found.push("others' agent");
  return found;
}

export function press(machine: Machine, by: Presser): void {
  machine.say(NAMES[by]);
  machine.labels.add(`pressed by ${by}`);
  let deadline = machine.now + POWERDOWN_MS;
  if (by === 'us' || by === 'our agent') {
    const withinMs = machine.random.pick([POWERDOWN_MS, POWERDOWN_MS, 10 * SECOND, LATE_MS]);
    const outcome = machine.random.pick<Intended['outcome']>([
      ...(['delivered', 'delivered', 'delivered', 'uncertain', 'pending'] as const),
    ]);
    ({ deadline } = machine.intend('powerdown', withinMs, outcome));
  }
  if (by === 'watchdog') machine.tell('WATCHDOG', { action: 'shutdown' });
  // The hypervisor does not know what an agent is asked to do.
  if (!by.endsWith('agent')) machine.tell('POWERDOWN');
  machine.presses.push({ at: machine.now, by, deadline, wasObeyed: false });
}

/** Something that does not end the machine. A running machine keeps running. */
export function interlude(machine: Machine): void {
  const { options, random } = machine;
  const all: [number, (machine: Machine) => void][] = [
    [2, pauseAndGoOn],
    [3, ignoredPress],
    [2, pressThatFailed],
    [1, failedMigration],
    [1, snapshot],
    [1, cameBack],
  ];
  if (options.watchdog === 'none') all.push([2, expiredWatchdog]);
  if (!options.noReboot) all.push([2, reboot], [1, resetFromOutside]);
  if (options.noShutdown) all.push([3, offAndOnAgain]);
  if (options.panic === 'run') all.push([1, survivedPanic]);
  random.weighted(all.map(([weight, play]) => [weight, play] as const))(machine);
  passTime(machine);
}

/** Lets seconds, minutes, hours or days pass. */
export function passTime(machine: Machine): void {
  const span = machine.random.pick([SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 3 * DAY]);
  machine.wait(span / 2, span * 2);
}

function pauseAndGoOn(machine: Machine): void {
  const isFull = machine.random.chance(0.2);
  machine.say(isFull ? 'its disk is full: it pauses' : 'somebody pauses it');
  if (isFull) machine.tell('BLOCK_IO_ERROR', { action: 'stop' });
  machine.pause(isFull ? 'io-error' : 'paused');
  machine.wait(100, MINUTE);
  machine.say('it goes on');
  machine.resume();
}

function reboot(machine: Machine): void {
  machine.say('the guest reboots');
  machine.tell('RESET', { guest: true, reason: 'guest-reset' });
}

function resetFromOutside(machine: Machine): void {
  machine.say('somebody resets it');
  machine.tell('RESET', { guest: false, reason: 'host-qmp-system-reset' });
}

function ignoredPress(machine: Machine): void {
  press(machine, machine.random.pick(pressers(machine)));
  machine.say('and the guest ignores that');
}

/** The press is on record, but had no effect. */
function pressThatFailed(machine: Machine): void {
  machine.say('we want to press its power button, and cannot');
  machine.intend('powerdown', POWERDOWN_MS, 'not-delivered');
  machine.labels.add('press that failed');
}

function failedMigration(machine: Machine): void {
  const { options, random } = machine;
  const isOurs = random.chance(0.5);
  machine.say(`${isOurs ? 'we migrate' : 'somebody migrates'} it, and that fails`);
  if (isOurs) machine.intend('migrate', 10 * MINUTE);
  const told = (status: string) => {
    if (options.migrationEvents) machine.tell('MIGRATION', { status });
  };
  told('setup');
  told('active');
  machine.wait(SECOND, 20 * SECOND);
  // It fails on the way, or in its last step.
  const isLate = random.chance(0.3);
  if (isLate) machine.pause('paused');
  told('failed');
  if (isLate) machine.resume();
  machine.labels.add('failed migration');
}

/** It had moved to another host, whose failure makes it resume here. */
function cameBack(machine: Machine): void {
  machine.say('somebody migrates it; that host cannot run it, and it goes on here');
  const told = (status: string) => {
    if (machine.options.migrationEvents) machine.tell('MIGRATION', { status });
  };
  told('setup');
  told('active');
  machine.wait(SECOND, 20 * SECOND);
  machine.pause('postmigrate');
  told('completed');
  machine.wait(10, SECOND);
  machine.resume();
  machine.labels.add('came back');
}

function snapshot(machine: Machine): void {
  machine.say('somebody takes a snapshot of it');
  machine.pause('save-vm');
  machine.wait(10, SECOND);
  machine.resume();
}

function expiredWatchdog(machine: Machine): void {
  machine.say('its watchdog expires, and does nothing');
  machine.tell('WATCHDOG', { action: 'none' });
}

function survivedPanic(machine: Machine): void {
  machine.say('the guest panics, and that is of no consequence');
  machine.tell('GUEST_PANICKED', { action: 'run' });
}

/** The machine shuts down but its process stays, and then it is started again. */
function offAndOnAgain(machine: Machine): void {
  const { random } = machine;
  const by = random.pick(pressers(machine));
  if (random.chance(0.5)) {
    press(machine, by);
    machine.wait(SECOND, 8 * SECOND);
    machine.say('the guest obeys');
  } else {
    restFromPresses(machine);
    machine.say('the user powers off');
  }
  for (const each of machine.presses) each.wasObeyed = true;
  machine.shutDown('guest-shutdown');
  machine.wait(100, MINUTE);
  machine.say(`pid ${OTHER_PID} starts it again`);
  machine.tell('RESET', { guest: false, reason: 'host-qmp-system-reset' });
  machine.resume();
  machine.labels.add('revived');
  // Let the intents expire first: what the guest does by itself comes later.
  machine.wait(LATE_MS, 2 * LATE_MS);
}

/** Waits until no earlier press can explain an end. */
export function restFromPresses(machine: Machine): void {
  const last = machine.presses.findLast(({ wasObeyed }) => !wasObeyed);
  if (last === undefined) return;
  const left = last.at + FORGOTTEN_MS - machine.now;
  if (left > 0) machine.wait(left, left + 6 * DAY);
  machine.labels.add('press long ago');
}
