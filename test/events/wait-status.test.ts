// Lane: unit

import { decodeWaitStatus } from '../../src';
import { signalName } from '../../src/events/wait-status';

test.each([
  [0x0000, { how: 'exited', exitCode: 0, signal: null, coreDumped: false }],
  [0x0a00, { how: 'exited', exitCode: 10, signal: null, coreDumped: false }],
  [0xff00, { how: 'exited', exitCode: 255, signal: null, coreDumped: false }],
  [0x0009, { how: 'killed', exitCode: null, signal: 'SIGKILL', coreDumped: false }],
  [0x000f, { how: 'killed', exitCode: null, signal: 'SIGTERM', coreDumped: false }],
  [0x000b, { how: 'killed', exitCode: null, signal: 'SIGSEGV', coreDumped: false }],
  [0x008b, { how: 'dumped', exitCode: null, signal: 'SIGSEGV', coreDumped: true }],
  [0x0086, { how: 'dumped', exitCode: null, signal: 'SIGABRT', coreDumped: true }],
  [29, { how: 'killed', exitCode: null, signal: 'SIGIO', coreDumped: false }],
  [34, { how: 'killed', exitCode: null, signal: 'SIGRTMIN+0', coreDumped: false }],
  [37, { how: 'killed', exitCode: null, signal: 'SIGRTMIN+3', coreDumped: false }],
  [64, { how: 'killed', exitCode: null, signal: 'SIGRTMIN+30', coreDumped: false }],
  [33, { how: 'killed', exitCode: null, signal: 'SIG33', coreDumped: false }],
])('wait status %i decodes to %j', (status, decoded) => {
  expect(decodeWaitStatus(status)).toEqual(decoded);
});

test('signals have the names that the system uses', () => {
  // If two names share a number, child_process uses the first: SIGABRT rather than SIGIOT.
  const { signals } = jest.requireActual<typeof import('node:os')>('node:os').constants;
  for (const [name, number] of Object.entries(signals)) {
    const known = Object.entries(signals).filter(([, other]) => other === number);
    expect(known.map(([alias]) => alias)).toContain(signalName(number));
    expect(name).toMatch(/^SIG/);
  }
  expect(signalName(0)).toBeNull();
  expect(signalName(65)).toBeNull();
});
