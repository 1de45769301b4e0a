// exitwatch with a listener that looks at how each process exited. Prints `ready`. When its stdin
// ends, prints as JSON how many exits were reported and how late (except the first SKIPPED), and
// when the last one came. Usage: exitwatch.cjs [SKIPPED [OPTIONS [WATCHED]]], with the monitor's
// options as JSON.
const { ExitMonitor } = require('..');

const MOST = 4 * 1024 * 1024;
const lateUs = new Uint32Array(MOST);
let count = 0;
let failed = 0;
let seen = 0;
let lost = 0;
let lastNs = 0;
let skipped = Number(process.argv[2] ?? 0);

const nowNs = () => Number(process.hrtime.bigint());

const options = JSON.parse(process.argv[3] ?? '{"scope":"all"}');
const monitor = new ExitMonitor(options);
if (process.argv[4] !== undefined) monitor.watch(Number(process.argv[4])).exited.catch(() => {});
monitor.on('gap', (gap) => {
  lost += gap.lost ?? 0;
});
monitor.on('exit', (event) => {
  seen++;
  if (event.how !== 'exited' || event.exitCode !== 0) failed++;
  if (event.exitedNs === null) return;
  lastNs = nowNs();
  if (skipped > 0) {
    skipped--;
    return;
  }
  if (count < MOST) lateUs[count++] = (lastNs - event.exitedNs) / 1000;
});

monitor.start().then(({ filter }) => {
  console.log('ready', filter);
  process.stdin.resume();
  process.stdin.on('end', () => {
    const sorted = lateUs.subarray(0, count).sort();
    const at = (share) => sorted[Math.floor(count * share)] ?? 0;
    const { wakeups } = monitor.stats();
    const result = { seen, failed, lost, p50Us: at(0.5), p99Us: at(0.99), wakeups, lastNs };
    console.log(JSON.stringify(result));
    void monitor.close();
  });
});
