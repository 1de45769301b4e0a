import { once } from 'node:events';
import { createServer } from 'node:net';

it('leaves an abstract socket, which keeps nothing running', async () => {
  const server = createServer().listen(`\0exitwatch-left-${process.pid}`);
  await once(server, 'listening');
  server.unref();
});
