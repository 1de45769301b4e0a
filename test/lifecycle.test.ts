import { LineProcess, program, REPOSITORY, run } from './support/programs';

const WORKERS = 4;

/** Runs in a Worker: a monitor at work, until `end`. */
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

/** Starts Workers while processes end, ends them, and prints what is left of them. */
const main = (workerEnd: string, mainEnd: string) => `
  const { Worker } = require('node:worker_threads');
  const { readdirSync, readFileSync, readlinkSync } = require('node:fs');
  const threads = () => readdirSync('/proc/self/task')
    .filter((tid) => readFileSync('/proc/self/task/' + tid + '/comm', 'utf8') === 'exitwatch\\n').length;
  const sockets = () => readdirSync('/proc/self/fd').filter((fd) => {
    try { return /socket|pidfd|eventpoll|eventfd/.test(readlinkSync('/proc/self/fd/' + fd)); } catch { return false; }
  }).length;
  const before = sockets();
  const storm = require('node:child_process').spawn(${JSON.stringify(program('storm'))}, ['200000'], { stdio: 'ignore' });
  process.on('exit', () => storm.kill());
  const workers = Array.from({ length: ${WORKERS} }, () => new Worker(${JSON.stringify(worker(workerEnd))}, { eval: true }));
  workers.forEach((worker) => worker.on('error', () => {}));
  const started = workers.map((worker) => new Promise((resolve) => worker.once('message', resolve)));
  const ended = workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  Promise.all(started).then(async () => {
    if (threads() !== ${WORKERS}) console.log('not started');
    workers.forEach((worker) => worker.postMessage('end'));
    ${mainEnd}
    await Promise.all(ended);
    console.log('threads', threads(), 'descriptors', sockets() - before);
    process.exit(7);
  });
`;

const ENDS: [string, string, string][] = [
  ['terminate()', '', 'for (const worker of workers) worker.terminate();'],
  ['process.exit() in the Worker', 'process.exit(3);', ''],
  ['close()', 'monitor.close(); parentPort.close();', ''],
  ['an uncaught exception', 'throw new Error("uncaught");', ''],
];

test.each(ENDS)(
  'a monitor in a Worker that ends by %s leaves nothing',
  async (_, inWorker, inMain) => {
    const node = new LineProcess(process.execPath, ['-e', main(inWorker, inMain)]);
    expect(await node.rest()).toEqual(['threads 0 descriptors 0']);
    expect(await node.ended).toBe(7);
    expect(node.stderr).toBe('');
  },
);

test('process.exit() of the main thread ends a process with monitors in Workers', async () => {
  const node = new LineProcess(process.execPath, ['-e', main('', 'process.exit(5);')]);
  expect(await node.rest()).toEqual([]);
  expect(await node.ended).toBe(5);
  expect(node.stderr).toBe('');
});

test('a monitor that was made and never started is forgotten, with what it watched', async () => {
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
  expect(stdout).toBe('100 0\n');
});

test('a started monitor that nobody refers to works on', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    new ExitMonitor({ scope: 'all' }).once('exit', (event) => { console.log(event.event); process.exit(); }).start();
    setInterval(global.gc, 5);
    setTimeout(() => require('node:child_process').spawn('true'), 200);
  `;
  const { stdout } = await run(process.execPath, ['--expose-gc', '-e', script]);
  expect(stdout).toBe('exit\n');
});

test('200 monitors opened and closed leave no descriptor and no thread', async () => {
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
});
