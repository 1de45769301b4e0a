// Lane: storm

import { execFileSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';

import { ExitRecord, RecordKind, SignalRecord, StreamUse } from '../../src/native/abi';
import { loadAddon } from '../../src/native/load-addon';

import { itAsListener } from '../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { arrives, blockUntil } from '../support/wait';

const WORKERS = 8;

/** `npm run test:nodes` runs more. */

/** A program for a Worker that runs a monitor until `end`. */
const worker = (end: string) => `
  const { parentPort } = require('node:worker_threads');
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  const monitor = new ExitMonitor({ scope: 'all' });
  let exits = 0;
  monitor.on('exit', () => { exits++; });
  monitor.start().then(() => {
    monitor.watch(process.ppid);
    parentPort.postMessage('started');
    parentPort.once('message', () => { ${end} });
  });
`;

/**
 * A program that starts Workers while processes end, ends them, and prints what they leave behind.
 */
const main = (workerEnd: string, mainEnd: string) => `
  const { Worker } = require('node:worker_threads');
  const { readdirSync, readFileSync, readlinkSync } = require('node:fs');
  const threads = () => readdirSync('/proc/self/task')
    .filter((tid) => {
      try { return readFileSync('/proc/self/task/' + tid + '/comm', 'utf8') === 'exitwatch\\n'; } catch { return false; }
    }).length;
  const sockets = () => readdirSync('/proc/self/fd').filter((fd) => {
    try { return /socket|pidfd|eventpoll|eventfd|bpf/.test(readlinkSync('/proc/self/fd/' + fd)); } catch { return false; }
  }).length;
  const rings = () => (readFileSync('/proc/self/maps', 'utf8').match(/bpf-map/g) ?? []).length;
  const before = sockets();
  const storm = require('node:child_process').spawn(${JSON.stringify(program('storm'))}, ['200000'], { stdio: 'ignore' });
  process.on('exit', () => storm.kill());
  const workers = Array.from({ length: ${WORKERS} }, () => new Worker(${JSON.stringify(worker(workerEnd))}, { eval: true }));
  workers.forEach((worker) => worker.on('error', () => {}));
  const started = workers.map((worker) => new Promise((resolve) => worker.once('message', resolve)));
  const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  Promise.all(started).then(async () => {
    if (threads() < ${WORKERS}) console.log('not started');
    workers.forEach((worker) => worker.postMessage('end'));
    ${mainEnd}
    await Promise.all(ended);
    console.log('threads', threads(), 'descriptors', sockets() - before, 'maps', rings());
    process.exit(7);
  });
`;

const ENDS: [string, string, string][] = [
  ['terminate()', '', 'for (const worker of workers) worker.terminate();'],
  ['process.exit() in the Worker', 'process.exit(3);', ''],
  ['close()', 'monitor.close(); parentPort.close();', ''],
  ['an uncaught exception', 'throw new Error("uncaught");', ''],
  ['doing nothing', 'monitor.unref(); parentPort.close();', ''],
  ['an exception in a listener', 'monitor.on("exit", () => { throw new Error("thrown"); });', ''],
];

itAsListener.each(ENDS)(
  `${WORKERS} Workers, each with a monitor, leave nothing behind when they end by %s`,
  async (_, inWorker, inMain) => {
    for (let round = 0; round < ROUNDS; round++) {
      const node = new LineProcess(process.execPath, ['-e', main(inWorker, inMain)]);
      expect(await node.rest()).toEqual(['threads 0 descriptors 0 maps 0']);
      expect(await node.ended).toBe(7);
      expect(node.stderr).toBe('');
    }
  },
  60_000 + ROUNDS * 5000,
);

/** Ways to end the main thread while its monitor and those of Workers run. */
const MAIN_ENDS: [string, string, number, RegExp][] = [
  ['process.exit()', 'process.exit(5);', 5, /^$/],
  ['an uncaught exception', 'throw new Error("uncaught");', 1, /Error: uncaught/],
];

itAsListener.each(MAIN_ENDS)(
  'a main thread with monitors in Workers that ends by %s keeps its exit code',
  async (_, end, code, stderr) => {
    for (let round = 0; round < ROUNDS; round++) {
      const node = new LineProcess(process.execPath, ['-e', main('', end)]);
      expect(await node.rest()).toEqual([]);
      expect(await node.ended).toBe(code);
      expect(node.stderr).toMatch(stderr);
    }
  },
  60_000 + ROUNDS * 5000,
);

test.each([
  ['process.exit()', 'process.exit(5)', 5],
  ['an uncaught exception', 'throw new Error("uncaught")', 1],
  ['an exception in a listener', 'monitor.on("exit", () => { throw new Error("thrown"); })', 1],
  ['close()', 'monitor.close()', 0],
  ['doing nothing', 'monitor.unref()', 0],
])(
  'a process whose monitor runs in a storm and that ends by %s keeps its exit code',
  async (_, end, code) => {
    const script = `
      const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
      const monitor = new ExitMonitor({ scope: 'all' });
      const storm = require('node:child_process').spawn(${JSON.stringify(program('storm'))}, ['200000'], { stdio: 'ignore' });
      storm.unref();
      process.on('exit', () => storm.kill());
      monitor.start().then(({ event }) => {
        console.log(event);
        setTimeout(() => { ${end}; }, 50);
      });
    `;
    for (let round = 0; round < ROUNDS; round++) {
      const node = new LineProcess(process.execPath, ['-e', script]);
      expect(await node.rest()).toEqual(['ready']);
      expect(await node.ended).toBe(code);
    }
  },
  60_000 + ROUNDS * 5000,
);

test('a monitor that was never started is collected, together with its watches', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const { readdirSync } = require('node:fs');
    const before = readdirSync('/proc/self/fd').length;
    for (let i = 0; i < 100; i++) new ExitMonitor().watch(process.ppid);
    const made = readdirSync('/proc/self/fd').length - before;
    setImmediate(() => {
      global.gc();
      setImmediate(() => console.log(made, readdirSync('/proc/self/fd').length - before));
    });
  `;
  const { stdout } = await run(process.execPath, ['--expose-gc', '-e', script]);
  expect(stdout).toBe('200 0\n');
});

test('a started monitor keeps running without a reference to it', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    new ExitMonitor({ scope: 'all' }).once('exit', (event) => { console.log(event.event); process.exit(); }).start();
    setInterval(global.gc, 5);
    setInterval(() => require('node:child_process').spawn('sleep', ['1.5']), 200);
  `;
  const { stdout } = await run(process.execPath, ['--expose-gc', '-e', script]);
  expect(stdout).toBe('exit\n');
});

test('200 monitors, opened and closed, leave no descriptor and no thread behind', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const { readdirSync } = require('node:fs');
    const count = () => readdirSync('/proc/self/fd').length + readdirSync('/proc/self/task').length;
    (async () => {
      let before;
      for (let i = 0; i < 200; i++) {
        const monitor = new ExitMonitor({ scope: i % 2 ? 'all' : 'watched' });
        await monitor.start();
        monitor.watch(process.ppid);
        await monitor.close();
        if (i === 0) before = count();
      }
      console.log(count() - before);
    })();
  `;
  const { stdout } = await run(process.execPath, ['-e', script]);
  expect(stdout).toBe('0\n');
}, 180_000);

itAsListener('a reader that is closed during a delivery makes no further calls', async () => {
  const addon = loadAddon();
  const reader = new addon.ExitReader({
    ...{ watchedOnly: false, forceCbpf: true, streamUse: StreamUse.required, opensPidfds: false },
    ...{ tracesSignals: false, spoil: '', receiveBufferBytes: 1024 * 1024, queueLimit: 10_000 },
    ...{ canaryIntervalMs: 0, statusTimeoutMs: 1000, maxDelayMs: 0, commandLines: false },
  });
  // A buffer for a single record makes the reader call once per record.
  const record = new Int32Array(ExitRecord.bytes / 4);
  const told = new EventEmitter();
  let hasEnded = false;
  let isClosed = false;
  let late = 0;
  reader.start(record.buffer, new ArrayBuffer(SignalRecord.bytes), () => {
    if (isClosed) late++;
    else if (record[ExitRecord.kind / 4] === RecordKind.ready) told.emit('ready');
    else if (hasEnded) {
      isClosed = true;
      reader.close();
      told.emit('closed');
    }
  });
  await arrives('the reader to be ready', once(told, 'ready'));
  // The processes that end while the loop is blocked are delivered together.
  execFileSync('sh', ['-c', 'for i in $(seq 100); do sh -c :; done']);
  blockUntil('queued ends', () => reader.stats().queueDepth >= 50);
  hasEnded = true;
  await arrives('the closing call', once(told, 'closed'));
  expect(late).toBe(0);
});
