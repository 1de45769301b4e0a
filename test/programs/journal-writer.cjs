// journal-writer.cjs PACKAGE DIR COUNT: writes COUNT ends into a journal, a thousand at a time, whether there is room
// or not. Prints how many it was told are done with, and kills itself.
const [root, dir, count] = process.argv.slice(2);
const { JournalWriter } = require(`${root}/dist/journal`);

let stored = 0;
const journal = new JournalWriter({ dir, onStored: (exits) => (stored += exits.length) });

const endOf = (i) => ({
  ...{
    event: 'exit',
    id: `of-${i}`,
    pid: 1 + (i % 30_000),
    parentPid: 1,
    name: 'sh',
    program: 'dash',
  },
  ...{ uid: 0, cgroup: '/', startedAt: new Date(i), exitedAt: new Date(i), exitedNs: i * 1e6 },
  ...{ uncertaintyMs: 0, source: 'connector', isRepeated: false, lossless: true, traced: false },
  ...{
    tracedSince: null,
    requestsSince: null,
    sender: null,
    raisedAfter: null,
    signalsReceived: [],
    oom: false,
  },
  ...{ how: 'exited', exitCode: 0, signal: null, coreDumped: false, unknownReason: null },
});

async function main() {
  for (let i = 0; i < Number(count); i++) {
    journal.append(endOf(i));
    if (i % 1000 === 999) await journal.flush();
  }
  process.stdout.write(`${stored}\n`, () => process.kill(process.pid, 'SIGKILL'));
}

main();
