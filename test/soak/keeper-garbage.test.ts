// Lane: patient

import { once } from 'node:events';
import { connect } from 'node:net';

import { encodeMessage } from '../../src/supervisor/keeper/message.js';
import { KeeperHost } from '../support/keeper';
import { randomFrom } from '../support/random';
import { ROUNDS } from '../support/rounds';

const REQUESTS = 2000 * ROUNDS;

const OPERATIONS = [
  ...['start', 'start', 'look', 'signal', 'pause', 'resume', 'kill', 'forget', 'list', 'watch'],
  ...['upgrade', 'guard', 'end', 'nothing', ''],
];
const KEYS = [
  ...[
    'run',
    'file',
    'arg',
    'env',
    'cwd',
    'umask',
    'openFiles',
    'uid',
    'gid',
    'group',
    'noRoot',
    'cgroup',
    'out',
  ],
  ...[
    'err',
    'notify',
    'envFile',
    'fifo',
    'logFile',
    'logMost',
    'logKeep',
    'signal',
    'tree',
    'path',
  ],
  ...['whileConnected', 'status', 'x'],
];
/** As root: no path that could harm the host. */
const VALUES = [
  ...['', '0', '1', '15', '64', '99999999999999999999', '-1', 'a', 'b', 'true', '/proc/nosuch'],
  ...['/dev/null', '/proc/self', 'A=B', '=', 'x'.repeat(5000), '\u00e9\n\t', '../..', '.', '/proc'],
];

it(`${REQUESTS} random requests, half of them damaged, harm neither the keeper nor its runs`, async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'stays', command: 'sleep', args: ['100000'] });
  const pid = host.keeper.run('stays')?.pid;
  const { keeperPid } = host;
  for (let i = 0; i < REQUESTS; i++) {
    const below = randomFrom(i);
    const pick = (list: readonly string[]) => list[below(list.length)] ?? '';
    const fields: [string, string][] = [
      ['seq', String(below(3))],
      ['op', pick(OPERATIONS)],
      ['run', pick(['a', 'b', 'c', 'd'])],
      ['file', pick(['true', '/nosuch', 'sh'])],
      ['arg', 'x'],
    ];
    for (let n = below(6); n > 0; n--) fields.push([pick(KEYS), pick(VALUES)]);
    const bytes = encodeMessage(fields);
    if (i % 2 === 0) {
      for (let n = 1 + below(4); n > 0; n--) bytes[below(bytes.length)] = below(256);
    }
    const socket = connect(host.path('keeper', 'socket'));
    socket.on('error', () => undefined);
    socket.end(bytes.subarray(0, i % 7 === 0 ? below(bytes.length) : bytes.length));
    socket.resume();
    await once(socket, 'close');
  }
  expect(host.restarts).toBe(0);
  expect(host.keeperPid).toBe(keeperPid);
  expect(host.keeper.run('stays')).toMatchObject({ state: 'running', pid });
});
