// node vm-watcher.cjs: watches the virtual machines on its stdin, one JSON line each with the
// argument of VmMonitor.watch(). Prints `ready` once it hears of ends, and their verdicts as JSON lines.
const { createInterface } = require('node:readline');

const { VmMonitor } = require('../../dist/vm');

const monitor = new VmMonitor();
monitor.on('warning', () => {});
monitor.on('stopped', (stop) => console.log(JSON.stringify(stop)));
monitor.start().then(() => console.log('ready'));
createInterface(process.stdin).on('line', (line) => {
  if (line !== '') monitor.watch(JSON.parse(line));
});
setInterval(() => {}, 1000);
