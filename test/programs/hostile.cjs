// node hostile.cjs SOCKET HOW: a socket that is silent, sends garbage, or floods its clients.
const { createServer } = require('node:net');

const [, , path, how] = process.argv;

createServer((socket) => {
  socket.on('error', () => undefined);
  if (how === 'garbage') socket.write('\0\xff{{{{\n'.repeat(1000));
  if (how !== 'flood') return;
  const send = () => {
    while (socket.write('x'.repeat(65536)));
  };
  socket.on('drain', send);
  send();
}).listen(path, () => console.log('listening'));
