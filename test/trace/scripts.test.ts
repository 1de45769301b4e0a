// Lane: unit

import { runsScripts, scriptOf } from '../../src/trace/scripts';

test.each([
  ['node /usr/bin/pm2 restart web', 'pm2 restart web'],
  ['node --no-warnings -r ./hook.js /usr/bin/pm2 stop all', 'pm2 stop all'],
  ['node --require=./hook.js -- pm2', 'pm2'],
  ['node -e code /usr/bin/pm2', null],
  ['node --eval=code /usr/bin/pm2', null],
  ['node -pe code /usr/bin/pm2', null],
  ['node --test /usr/bin/pm2', null],
  ['node -', null],
  ['node', null],
  ['python3 /usr/bin/supervisorctl stop web', 'supervisorctl stop web'],
  ['python3.11 -W ignore -Es supervisorctl -v', 'supervisorctl -v'],
  ['python3 -m supervisor.supervisorctl stop web', null],
  ['python3 -Ic code supervisorctl', null],
  ['sh /usr/sbin/service nginx stop', 'service nginx stop'],
  ['bash -eu -o pipefail +x /usr/sbin/service', 'service'],
  ['bash --norc --rcfile /dev/null service', 'service'],
  ['sh -c service', null],
  ['bash -euc service', null],
  ['sh -s service', null],
  ['sh /etc/rc.d/', null],
  [`sh /${'x'.repeat(256)}`, null],
  ['perl /usr/bin/service', null],
])('%j runs %j', (commandLine, expected) => {
  const words = commandLine.split(' ');
  const script = scriptOf([words[0] ?? ''], words);
  const [path = '', ...args] = script?.commandLine ?? [];
  expect(path.endsWith(script?.name ?? '')).toBe(true);
  expect(script && [script.name, ...args].join(' ')).toBe(expected);
});

test('an interpreter is known by any of its names', () => {
  const commandLine = ['/opt/node', 'pm2', 'kill'];
  expect(scriptOf(['MainThread', 'node'], commandLine)).toEqual({
    name: 'pm2',
    commandLine: ['pm2', 'kill'],
  });
  expect(scriptOf(['node-like'], commandLine)).toBeNull();
  expect(['MainThread', 'python3.13', 'dash', 'pm2'].map(runsScripts)).toEqual([
    ...[true, true, true, false],
  ]);
});
