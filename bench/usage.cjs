// Required before a command: prints what it has cost to descriptor 3, as JSON, when it ends.
const { readFileSync, writeSync } = require('node:fs');

/** Of this program alone: getrusage(2) counts what was there before execve(2), too. */
function peakRssMiB() {
  return Number(/VmHWM:\s*(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
}

process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  writeSync(
    3,
    JSON.stringify({
      cpuMs: (user + system) / 1000,
      rssMiB: peakRssMiB(),
    }),
  );
});
