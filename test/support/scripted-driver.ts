import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

import type { VmDriver, VmEvent, VmHappening, VmRun, VmWitness } from '../../src/vm';

/** The meanings of the words of test/programs/hypervisor.cjs. */
const MEANINGS: Record<string, VmHappening> = {
  started: { what: 'resume' },
  'button-pressed': { what: 'powerdown' },
  'guest-off': { what: 'shutdown', reason: 'guest-shutdown', byGuest: true },
  'guest-panicked': { what: 'panic', goesOn: false },
  'told-to-end': { what: 'shutdown', reason: 'host-quit', byGuest: false },
};

/** A driver for test/programs/hypervisor.cjs, with everything needed for verdicts on its ends. */
export function scriptedDriver(socketPath: string): VmDriver {
  const order = async (line: string) => {
    const socket = connect(socketPath);
    await once(socket, 'connect');
    socket.resume().end(`${line}\n`); // unread, it would never close
  };
  return {
    state: () => Promise.resolve('running'),
    powerDown: () => order('button'),
    forceOff: () => order('off'),
    witness: (run) => listen(socketPath, run),
  };
}

function listen(socketPath: string, run: VmRun): VmWitness {
  const events: VmEvent[] = [];
  let isFromItsStart = false;
  const socket = connect(socketPath);
  socket.on('error', (error) => {
    run.warning(error);
  });
  const closed = new Promise<void>((resolve) => socket.once('close', resolve));
  createInterface(socket).on('line', (line) => {
    if (line === 'hello') isFromItsStart = true;
    const [ms, said = ''] = line.split(' ');
    if (said === 'started') run.ready();
    if (said !== '')
      events.push({ ...(MEANINGS[said] ?? { what: 'other' }), at: new Date(Number(ms)), said });
  });
  return {
    testify: async () => {
      await closed;
      return {
        ...{ events, eventsComplete: isFromItsStart, agent: 'none', ready: true },
        ...{ mayLinger: false, guestSetsExitCode: false },
      };
    },
    close: () => socket.destroy(),
  };
}
