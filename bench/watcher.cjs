// Watches the processes whose pids come on stdin, one per line, up to an empty line. Usage:
// watcher.cjs SOURCE, or watcher.cjs ps-list. Prints `ready`, and `ended` when all have exited. If
// it polls, then every second.
const { createInterface } = require('node:readline');
const { setTimeout } = require('node:timers/promises');

const [source] = process.argv.slice(2);
const pids = [];

async function byExitwatch() {
  const { ExitMonitor } = require('..');
  const monitor = new ExitMonitor({ source });
  const ends = pids.map((pid) => monitor.watch(pid).exited);
  await monitor.start();
  console.log('ready');
  await Promise.all(ends);
  console.log('ended', monitor.stats().wakeups);
  await monitor.close();
}

async function byPsList() {
  const { default: psList } = await import('ps-list');
  console.log('ready');
  for (let left = new Set(pids); left.size > 0;) {
    await setTimeout(1000);
    const there = new Set((await psList()).map(({ pid }) => pid));
    left = new Set([...left].filter((pid) => there.has(pid)));
  }
  console.log('ended');
}

const lines = createInterface(process.stdin);
lines.on('line', (line) => {
  if (line !== '') pids.push(Number(line));
  else void (source === 'ps-list' ? byPsList() : byExitwatch()).then(() => lines.close());
});
