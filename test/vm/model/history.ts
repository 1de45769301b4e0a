import { ending } from './endings';
import { interlude, passTime } from './interludes';
import { Machine, MINUTE, OTHER_PID, OUR_PID, SECOND, type Options } from './machine';
import { endProcess } from './process-ends';
import { Random } from './random';
import { byAttack, byOthers, byUs, byVmm } from './truth';

/** Plays the life of one machine. A seed always gives the same one. */
export function playHistory(seed: number): Machine {
  const random = new Random(seed);
  const machine = new Machine(randomOptions(random), random);
  if (random.chance(0.04)) {
    failToStart(machine);
    return machine;
  }
  start(machine);
  if (machine.isGone) return machine;
  const interludes = random.weighted([
    [4, 0],
    [2, 1],
    [1, 2],
    [1, 4],
  ]);
  for (let each = 0; each < interludes; each++) interlude(machine);
  ending(machine);
  return machine;
}

function randomOptions(random: Random): Options {
  const startsAs = random.weighted([
    [16, 'running'],
    [1, 'paused'],
    [3, 'incoming'],
  ] as const);
  return {
    version: random.pick(['7.2', '10.0']),
    noShutdown: random.chance(0.3),
    noReboot: random.chance(0.2),
    log: random.chance(0.5),
    eventLog: random.chance(0.7),
    pidfile: random.chance(0.7),
    qmp: random.chance(0.9),
    watchdog: random.pick([null, null, null, null, 'poweroff', 'shutdown', 'none']),
    agent: random.pick(['none', 'none', 'held', 'open']),
    debugExit: random.chance(0.05),
    panic: random.pick(['poweroff', 'poweroff', 'pause', 'exit-failure', 'run']),
    migrationEvents: random.chance(0.4),
    startsPaused: startsAs === 'paused',
    incoming: startsAs === 'incoming',
  };
}

/** The machine ends before it is ready: the witnesses see little of that. */
function failToStart(machine: Machine): void {
  const { random } = machine;
  machine.wait(3, 40);
  switch (random.pick(['error', 'error', 'help', 'SIGTERM', 'SIGKILL'])) {
    case 'error':
      machine.say('an option is wrong, or its port is in use');
      machine.decide('cannot start', byVmm('start-failed'));
      machine.exit(1, random.chance(0.5));
      break;
    case 'help':
      machine.say('it only shows its version');
      machine.decide('shows its version', byVmm('start-exited'));
      machine.exit(0);
      break;
    case 'SIGTERM': {
      const isOurs = random.chance(0.3);
      machine.say(`${isOurs ? 'we send' : 'somebody sends'} SIGTERM before it is ready`);
      if (isOurs) machine.intend('SIGTERM', 5 * SECOND);
      machine.decide(
        'killed as it starts',
        isOurs ? byUs('start-killed') : byOthers('start-killed'),
      );
      machine.dieOf(machine.signal('SIGTERM', { pid: isOurs ? OUR_PID : OTHER_PID }));
      break;
    }
    default:
      machine.say('somebody sends SIGKILL before it is ready');
      machine.decide('killed as it starts', byAttack(['start-killed', 'killed']));
      machine.dieOf(machine.signal('SIGKILL', { pid: OTHER_PID }));
  }
}

function start(machine: Machine): void {
  const { options, random } = machine;
  machine.become(options.incoming ? 'inmigrate' : 'prelaunch');
  machine.wait(50, 90);
  machine.isReady = true;
  if (options.incoming) {
    arrive(machine);
    return;
  }
  if (options.startsPaused) {
    machine.say('somebody lets it run');
    machine.wait(100, 10 * SECOND);
  }
  machine.resume();
  // A client that connects early may have missed what happens in the first second.
  if (random.chance(0.2)) machine.wait(50, 400);
  else passTime(machine);
}

/** The guest comes from another host, where a press may have happened. */
function arrive(machine: Machine): void {
  const { options, random } = machine;
  const told = (status: string) => {
    if (options.migrationEvents) machine.tell('MIGRATION', { status });
  };
  machine.wait(100, 30 * SECOND);
  if (random.chance(0.1)) {
    machine.say('nobody comes');
    endProcess(machine);
    return;
  }
  told('setup');
  told('active');
  machine.wait(100, 30 * SECOND);
  if (random.chance(0.2)) {
    machine.say('the stream from the other host breaks off');
    told('failed');
    machine.decide('incoming stream breaks', byVmm('start-failed'));
    machine.exit(1, true);
    return;
  }
  machine.say('its guest has arrived from another host');
  machine.resume();
  told('completed');
  machine.labels.add('arrived');
  if (!random.chance(0.3)) {
    passTime(machine);
    return;
  }
  machine.wait(50, MINUTE);
  machine.say('the guest obeys its power button, which was pressed there');
  machine.decide('obeys a press on another host', {
    ...byOthers(['other-powerdown', 'admin-powerdown']),
    initiators: ['host', 'manager'],
  });
  machine.shutDown('guest-shutdown');
  if (machine.isGone) return;
  machine.wait(100, MINUTE);
  endProcess(machine);
}
