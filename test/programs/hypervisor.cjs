// node hypervisor.cjs SOCKET: a hypervisor with events of its own, on a unix socket. To each client it says
// `hello`, all that has happened since its start, and what happens from then on: `MILLISECONDS WORD`.
// It obeys lines: `button`, `off` (it ends), and what its guest does: `guest-off`, `guest-panic`, `guest-deaf`
// (it does not listen to its button). With SILENT=1 it does not say what was before.
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
