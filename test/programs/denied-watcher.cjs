// Watches processes while deny.so forbids it pidfd_open(2) in the middle of its life. Reads
// commands from stdin, one per line, and answers each with one line of JSON:
//
//   identify PID          the identity
//   watch TARGETS         an array of pids and identities: how each is watched
//   deny                  forbids pidfd_open from now on: what is known of the parent then
//   terminate, alive ID   the result for an identity
//   ends DEATHS           the events of each watch and of the monitor, once all watches and these
//   have ended
const { writeFileSync, existsSync } = require('node:fs');
const { createInterface } = require('node:readline');
const { setTimeout } = require('node:timers/promises');

const { ExitMonitor, identify } = require(process.env.EXITWATCH);
const { isAlive, terminate } = require(`${process.env.EXITWATCH}/dist/process`);

const { SCOPE: scope, SOURCE: source, DENY_WHEN: denyWhen } = process.env;
const monitor = new ExitMonitor({ scope, source, pollIntervalMs: 50 });
const watches = [];
const told = [];
const gaps = [];
monitor.on('exit', (event) => told.push(event));
monitor.on('gap', (gap) => gaps.push(gap));

const COMMANDS = {
  identify,
  watch: (targets) =>
    targets.map((target) => {
      const watch = monitor.watch(target);
      watches.push(watch);
      return {
        id: watch.identity.id,
        hasPidfd: watch.hasPidfd,
        withoutPidfd: monitor.stats().withoutPidfd,
      };
    }),
  deny: async () => {
    writeFileSync(denyWhen, '');
    while (existsSync(denyWhen)) await setTimeout(1);
    return { inode: identify(process.ppid).inode, parent: isAlive(identify(process.ppid)) };
  },
  terminate,
  alive: isAlive,
  ends: async (others = []) => {
    const ends = await Promise.all(watches.map((watch) => watch.exited));
    const isReported = ({ pid, spawnedNs }) =>
      told.some((event) => event.pid === pid && (event.exitedNs ?? Infinity) > spawnedNs);
    while (!others.every(isReported)) await setTimeout(1);
    const { watches: left, source: by } = monitor.stats();
    return { ends, told, gaps, left, by };
  },
};

monitor.start().then(async (ready) => {
  console.log(JSON.stringify(ready));
  for await (const line of createInterface(process.stdin)) {
    const [command, argument] = line.split(/ (.*)/);
    const parsed = argument === 'undefined' ? undefined : JSON.parse(argument);
    console.log(JSON.stringify(await COMMANDS[command](parsed)));
  }
  await monitor.close();
});
