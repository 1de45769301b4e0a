import { LATE_MS } from './interludes';
import { MINUTE, SECOND, type Machine } from './machine';
import { goneAway, type TrueCause, type Truth } from './truth';

/** A machine that is already paused sends no STOP. */
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

export function migration(machine: Machine): void {
  const isOurs = machine.random.chance(0.5);
  machine.say(`${isOurs ? 'we migrate' : 'somebody else migrates'} it to another host`);
  if (isOurs) machine.intend('migrate', machine.random.pick([10 * MINUTE, MINUTE]));
  goAway(machine);
  machine.say('there it goes on');
  const who = isOurs ? 'us' : 'others';
  machine.decide(`migrated by ${who}`, away(machine, ['migrated-away', 'saved'], who));
}

/**
 * To any observer, the manager migrates a machine, but who saves it to a file is unknown. A
 * migration that failed shortly before may have been retried by anyone.
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

export function saving(machine: Machine): void {
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
