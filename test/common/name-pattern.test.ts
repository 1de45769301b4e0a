// Lane: unit

import { literally, NamePattern } from '../../src/common/name-pattern';

test.each([
  ['systemd-networkd', ['systemd-network', 'systemd-networkd'], true],
  ['systemd-networkd', ['systemd-network', 'systemd-networkd-wait-online'], false],
  ['systemd-networkd', ['systemd-network'], true],
  ['systemd-networkd*', ['systemd-network', 'systemd-networkd-wait-online'], true],
  // A link to a version of it.
  ['x86_64-linux-gnu-gcc', ['x86_64-linux-gn', 'x86_64-linux-gnu-gcc-13'], true],
  ['my-payment-service', ['my-payment-serv', 'my-payment-service-2.3.1'], true],
  // A script, or a name that it has given itself.
  ['my-payment-service', ['my-payment-serv', 'python3'], true],
  ['äöüäöüäöü', ['äöüäöüä\ufffd', 'äöüäöüäöü'], true],
  ['sh', ['sh', 'dash'], true],
  ['s', ['sh', 'dash'], false],
  // A name that looks like a pattern.
  ['worker[3]', ['worker[3]'], true],
  ['worker[3]', ['worker3', 'node'], true],
  ['worker[3]', ['worker[4]'], false],
  ['queue-worker[3]', ['queue-worker[3]', 'node'], true],
])('%s of %j: %s', (glob, names, isMatch) => {
  expect(new NamePattern([glob]).matches(names)).toBe(isMatch);
});

test('what may match is a name that the kernel has cut', () => {
  const pattern = new NamePattern(['systemd-networkd']);
  expect(pattern.mayMatch(['systemd-network', 'systemd-networkd-wait-online'])).toBe(true);
  expect(pattern.mayMatch(['systemd-networ', 'systemd-networkd-wait-online'])).toBe(false);
});

test.each(['worker[3]', 'a*b', 'really?', '[', 'plain'])('%s is meant literally', (name) => {
  const pattern = new NamePattern([literally(name)]);
  const others = ['worker3', 'aXb', 'reallyX', 'X', 'plainX'];
  expect([name, ...others].filter((each) => pattern.matches([each]))).toEqual([name]);
});
