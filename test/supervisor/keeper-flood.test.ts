// Lane: storm

import { readFileSync } from 'node:fs';

import { encodeMessage, MessageReader } from '../../src/supervisor/keeper/message.js';
import { KeeperHost, rawClient } from '../support/keeper';
import { until } from '../support/wait';

const rssKib = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]);

it('half messages of many clients, and a flood of requests whose answers nobody reads, cost nothing in the end', async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
  const half = encodeMessage([
    ['seq', '1'],
    ['op', 'x'.repeat(100_000)],
  ]).subarray(0, 90_000);
  const sockets = await Promise.all(Array.from({ length: 20 }, () => rawClient(host)));
  for (const socket of sockets) socket.write(half);
  const flood = await rawClient(host);
  flood.pause();
  const request = encodeMessage([
    ['seq', '1'],
    ['op', 'look'],
    ['run', 'stays'],
  ]);
  flood.write(Buffer.concat(Array.from({ length: 20_000 }, () => request)));
  // Others are served in the meantime.
  await host.keeper.start({ id: 'more', command: 'true' });
  await host.end('more');
  for (const socket of [...sockets, flood]) socket.destroy();
  await until('its memory to be given back', () => rssKib(host.keeperPid) < 2048);
});

it('each request is answered, though nothing else wakes the keeper', async () => {
  await using host = await KeeperHost.open();
  await host.keeper.start({ id: 'over', command: 'true' });
  await host.end('over');
  const socket = await rawClient(host);
  const reader = new MessageReader();
  let next = 0;
  socket.on('data', (piece: Buffer) => {
    for (const message of reader.read(piece)) if (message.number('seq') === next) next++;
  });
  // Each time there is more to answer than the socket takes, and all requests are in one piece.
  for (let batch = 1; batch <= 300; batch++) {
    const first = (batch - 1) * 1500;
    const requests = Array.from({ length: 1500 }, (_, i) =>
      encodeMessage([
        ['seq', String(first + i)],
        ['op', 'look'],
        ['run', 'over'],
      ]),
    );
    socket.write(Buffer.concat(requests));
    await until(
      `the answers of batch ${batch}`,
      () => next === first + 1500,
      () => `${next - first} came`,
    );
  }
  socket.destroy();
}, 180_000);
