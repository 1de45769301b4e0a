// exit-store.cjs PACKAGE STATE_DIR PIN_DIR FILE [SLACK]: stores every exit of the host in FILE, a line
// each, and commits it. Prints "ready". With SLACK, kills itself after a random one of the next SLACK
// exits, which it has stored and not committed.
const { closeSync, ftruncateSync, openSync, readFileSync, writeSync } = require('node:fs');

const [root, stateDir, pinDir, path, slack] = process.argv.slice(2);
const { ExitMonitor } = require(root);

const file = openSync(path, 'a+');
const text = readFileSync(file, 'utf8');
const whole = text.slice(0, text.lastIndexOf('\n') + 1);
ftruncateSync(file, Buffer.byteLength(whole));
const lines = whole.split('\n').filter((line) => line !== '');
const known = new Set(lines.map((line) => JSON.parse(line).id));

let left = slack === undefined ? Infinity : 1 + Math.floor(Math.random() * Number(slack));
const store = (event) => writeSync(file, `${JSON.stringify(event)}\n`);

const monitor = new ExitMonitor({
  ...{ scope: 'all', stateDir, autoCommit: false, recorder: { pinDir, ringBytes: 16 << 20 } },
});
monitor.on('exit', (event) => {
  if (!known.has(event.id)) {
    const { id, pid, exitedNs, how, exitCode, source, isRepeated } = event;
    store({ id, pid, exitedNs, how, exitCode, source, isRepeated });
    known.add(id);
    if (--left === 0) process.kill(process.pid, 'SIGKILL');
  } else if (!event.isRepeated) {
    store({ id: event.id, wrong: 'came again, and does not say so' });
  }
  monitor.commit(event);
});
monitor.on('gap', ({ reason, lost, from, to }) => store({ reason, lost, from, to }));
process.stdin.on('end', () => monitor.close().then(() => closeSync(file))).resume();
monitor.start().then(({ memory }) => console.log(`ready ${memory}`));
