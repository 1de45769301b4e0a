// keeper-client SOCKET BYTES ANSWERS REQUEST: sends so many bytes of a request (base64) to a keeper,
// waits for so many messages, and kills itself.
const { connect } = require('node:net');

const [socketPath, bytes, answers, request] = process.argv.slice(2);
const die = () => process.kill(process.pid, 'SIGKILL');
let left = Number(answers);
const socket = connect(socketPath, () => {
  const part = Buffer.from(request, 'base64').subarray(0, Number(bytes));
  if (part.length === 0) return left === 0 && die();
  socket.write(part, () => left === 0 && die());
});
let received = Buffer.alloc(0);
socket.on('data', (piece) => {
  received = Buffer.concat([received, piece]);
  while (received.length >= 4 && received.length >= 4 + received.readUInt32LE()) {
    received = received.subarray(4 + received.readUInt32LE());
    if (--left === 0) die();
  }
});
