// stored-watcher.cjs PACKAGE STATE_DIR PIDS RESULTS [PIN_DIR]: a service. The first time, watches the pids in the
// file PIDS; later, writes how those ended to the file RESULTS, a line of JSON each.
const { existsSync, readFileSync, writeFileSync } = require('node:fs');

const [root, stateDir, pids, results, pinDir = '/nowhere'] = process.argv.slice(2);
const { ExitMonitor } = require(root);

async function main() {
  const monitor = new ExitMonitor({ stateDir, recorder: { pinDir } });
  const { memory, memoryDowngrade, restored } = await monitor.start();
  if (restored.length === 0) {
    for (const pid of readFileSync(pids, 'utf8').trim().split(/\s+/)) {
      monitor.watch(Number(pid), { key: `of ${pid}` });
    }
    writeFileSync(`${results}.ready`, JSON.stringify({ memory, memoryDowngrade }));
    return;
  }
  const exits = await Promise.all(restored.map(({ exited }) => exited));
  const lines = exits.map((event, i) => JSON.stringify({ key: restored[i].key, ...event }));
  if (!existsSync(results)) writeFileSync(results, `${lines.join('\n')}\n`);
}

main().catch((error) => {
  writeFileSync(results, `${error.stack}\n`);
});
