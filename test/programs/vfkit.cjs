// node vfkit.cjs SOCKET PIDFILE: answers like vfkit's RESTful service. Environment variables:
// SAYS: the state that it reports, or `garbage`, `flood`, `hang`, `eof`
// STOP, HARD_STOP: `obey`, `early` (reports stopped, and ends 3 s later), `eof` (hangs up in the
// middle of its answer, and stays), `die` (ends in the middle of its answer), `refuse`, `ignore`
// TERM=ignore: ignores SIGTERM.
const { writeFileSync } = require('node:fs');
const { createServer } = require('node:http');

const [, , socket, pidfile] = process.argv;
const { SAYS = 'VirtualMachineStateRunning', STOP = 'obey', HARD_STOP = 'die', TERM } = process.env;
let state = SAYS;

function tell(response) {
  switch (state) {
    case 'garbage':
      return response.end('<html>');
    case 'flood':
      return response.end('x'.repeat(1024 * 1024));
    case 'hang':
      return undefined;
    case 'eof':
      return hangUp(response);
    default:
      return response.end(JSON.stringify({ state, canStop: true }));
  }
}

function hangUp(response) {
  response.writeHead(202, { 'content-length': 100 });
  response.write('{"st');
  setTimeout(() => response.destroy(), 20);
}

function change(how, response) {
  switch (how) {
    case 'obey':
      response.writeHead(202).end();
      return setTimeout(() => process.exit(0), 50);
    case 'early':
      state = 'VirtualMachineStateStopped';
      response.writeHead(202).end();
      return setTimeout(() => process.exit(0), 3000);
    case 'eof':
      return hangUp(response);
    case 'die':
      response.writeHead(202, { 'content-length': 100 });
      response.write('{"st');
      return setTimeout(() => process.exit(0), 20);
    case 'refuse':
      return response.writeHead(500).end('{"error": "no"}');
    default:
      return response.writeHead(202).end();
  }
}

process.on('SIGTERM', () => {
  if (TERM !== 'ignore') process.exit(0);
});

createServer((request, response) => {
  if (request.method === 'GET') return tell(response);
  let body = '';
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    const { state: wanted } = JSON.parse(body);
    console.log(wanted);
    change(wanted === 'HardStop' ? HARD_STOP : STOP, response);
  });
  return undefined;
}).listen(socket, () => {
  writeFileSync(pidfile, String(process.pid));
  console.log('ready');
});
