import type { SignalName } from '../../../src';

import { press } from './interludes';
import { ITS_PID, OTHER_PID, OUR_PID, SECOND, type Machine } from './machine';
import { obey } from './power-offs';
import { byAttack, byOthers, byUs, byVmm } from './truth';

/** The ends caused by those who manage processes. */
export function endProcess(machine: Machine): void {
  machine.random.weighted<(machine: Machine) => void>([
    [6, endedFromOutside],
    [2, ourStop],
    [1, itsOwnFault],
  ])(machine);
}

/**
 * The power button, then quit, then SIGTERM, then SIGKILL: the first step that works is the last.
 */
export function ourStop(machine: Machine): void {
  const { options, random } = machine;
  const isRunning = machine.status === 'running';
  const works = random.pick(['quit', 'SIGTERM', 'SIGKILL'] as const);
  if (random.chance(0.8)) {
    press(machine, 'us');
    machine.say(isRunning ? 'and the guest ignores that' : 'which is of no use: it does not run');
    machine.now = machine.presses.at(-1)?.deadline ?? machine.now;
    // It obeys after all, after exitwatch has given up on it.
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
  // There is no time to obey that.
  if (!isOurs && machine.random.chance(0.1)) machine.signal('SIGTERM', { pid });
  machine.dieOf(machine.signal(signal, { pid }));
}

/** One act by exitwatch or by others. */
export function endedFromOutside(machine: Machine): void {
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

/** A hypervisor that waits for a disk obeys when the disk is done. */
function stall(machine: Machine, isOurs: boolean): void {
  if (!isOurs || !machine.random.chance(0.05)) return;
  machine.wait(7 * SECOND, 40 * SECOND);
  machine.say('it was busy, and comes to that now');
  machine.labels.add('was busy');
}

export function itsOwnFault(machine: Machine): void {
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
