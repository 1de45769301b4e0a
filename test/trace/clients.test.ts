// Lane: unit

import { onlyLooks } from '../../src/trace/clients';

test.each([
  ['systemctl status nginx', true],
  ['systemctl --no-pager is-active nginx', true],
  ['systemctl restart nginx', false],
  ['systemctl kill --signal=HUP nginx', false],
  ['docker ps', true],
  ['docker container inspect web', true],
  ['docker container stop web', false],
  ['docker stop web', false],
  ['kubectl get pods', true],
  ['kubectl delete pod web', false],
  ['exitwatch service why web', true],
  ['exitwatch service restart web', false],
  ['exitwatch vm daemon', true],
  ['virsh list', true],
  ['virsh destroy web', false],
  ['reboot', false],
  ['', false],
])('%j only looks: %s', (command, looks) => {
  expect(onlyLooks(command.split(' '))).toBe(looks);
});

test('what is not known may have asked', () => {
  expect(onlyLooks(null)).toBe(false);
});
