// node hypervisor.cjs SOCKET: a hypervisor with events of its own on a unix socket. It sends each
// client `hello`, everything that has happened since its start, and then each new event as
// `MILLISECONDS WORD`. It obeys these lines: `button`, `off` (ends the process), and the actions of
// its guest: `guest-off`, `guest-panic`, `guest-deaf` (ignores the button). With SILENT=1 it does
// not send what happened before.
const { createServer } = require('node:net');

const [, , socket] = process.argv;
const clients = new Set();
const said = [];
let isDeaf = false;

function say(word) {
  const line = `${Date.now()} ${word}\n`;
  said.push(line);
  for (const client of clients) client.write(line);
}

function end(word) {
  say(word);
  for (const client of clients) client.end();
  server.close(() => process.exit(0));
}

const ORDERS = {
  button: () => {
    say('button-pressed');
    if (!isDeaf) end('guest-off');
  },
  off: () => end('told-to-end'),
  'guest-off': () => end('guest-off'),
  'guest-panic': () => end('guest-panicked'),
  'guest-deaf': () => (isDeaf = true),
};

const server = createServer((client) => {
  clients.add(client);
  client.on('error', () => undefined);
  client.on('close', () => clients.delete(client));
  client.write(process.env.SILENT === '1' ? '' : `hello\n${said.join('')}`);
  client.on('data', (chunk) => {
    for (const order of String(chunk).split('\n')) ORDERS[order]?.();
  });
}).listen(socket, () => {
  say('started');
  console.log('ready');
});
