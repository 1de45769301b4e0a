import type { VmDriver } from '../control/vm-driver.js';

import { changeState, stateOf } from './vfkit-service.js';
import { VfkitWitness } from './vfkit-witness.js';

/**
 * A driver for vfkit (Apple's Virtualization framework), through its RESTful service on a unix
 * socket (`--restful-uri unix://…`): `GET` and `POST /vm/state`. vfkit usually exits in the middle
 * of its answer to a HardStop.
 *
 * Its methods reject with an `ExitwatchError` `ERR_EXITWATCH_CONTROL`.
 *
 * @see [Other hypervisors](../../../docs/vm-control.md#other-hypervisors)
 */
export function vfkitDriver({ socket }: { socket: string }): VmDriver {
  return {
    state: (signal) => stateOf(socket, signal),
    powerDown: (signal) => changeState(socket, 'Stop', signal),
    forceOff: (signal) => changeState(socket, 'HardStop', signal),
    witness: (run) => new VfkitWitness(socket, run),
  };
}
