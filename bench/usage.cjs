// Required before a command: prints what it has cost to descriptor 3, as JSON, when it ends.
const { writeSync } = require('node:fs');

process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  writeSync(
    3,
    JSON.stringify({
      cpuMs: (user + system) / 1000,
      rssMiB: process.resourceUsage().maxRSS / 1024,
    }),
  );
});
