// A supervisor that does what its stdin says, a JSON object a line, and prints what happens. With
// KILL_AT=N and KILL_WHEN=before or after, it kills itself at the Nth durable write.
'use strict';
const fs = require('node:fs');
const { performance } = require('node:perf_hooks');
const { createInterface } = require('node:readline');

let writes = Number(process.env.KILL_AT ?? 0);
for (const name of ['renameSync', 'rmSync']) {
  const real = fs[name];
  fs[name] = (...args) => {
    const isOurs = String(args[0]).includes('/services/') && --writes === 0;
    if (isOurs && process.env.KILL_WHEN === 'before') process.kill(process.pid, 'SIGKILL');
    real(...args);
    if (isOurs) process.kill(process.pid, 'SIGKILL');
  };
}

const { Supervisor } = require('../../dist/supervisor/index.js');

const tell = (message) => fs.writeSync(1, `${JSON.stringify(message)}\n`);

let setBackMs = 0;

/** Does not wait long for calls that come together, nor to try again. */
const clock = {
  now: () => performance.now() - setBackMs,
  after: (ms, call) => {
    const timer = setTimeout(call, ms <= 5000 ? ms / 50 : ms);
    return () => clearTimeout(timer);
  },
};

const supervisor = new Supervisor({ stateDir: process.argv[2], clock });
supervisor.on('exit', ({ service, run, pid, how, signal, exitCode, isRepeated }) => {
  tell({ exit: { service, run, pid, how, signal, exitCode, isRepeated } });
});
for (const name of ['started', 'adopted']) {
  supervisor.on(name, ({ run, identity }) =>
    tell({ began: run, ticks: identity?.startTicks ?? 0 }),
  );
}
supervisor.on('orphan', (orphan) => tell({ orphan }));
supervisor.on('warning', ({ service, error }) => tell({ warning: [service, error.message] }));

const wall = Date.now.bind(Date);

const DO = {
  apply: ({ services }) => supervisor.apply(services),
  start: ({ name }) => supervisor.service(name).start(),
  stop: ({ name, graceMs }) => supervisor.service(name).stop({ graceMs }),
  restart: ({ name }) => supervisor.service(name).restart(),
  services: () => supervisor.services(),
  setBack: ({ byMs }) => {
    setBackMs += byMs;
  },
  memory: () => {
    global.gc();
    return process.memoryUsage().heapUsed;
  },
  close: () => supervisor.close(),
  clock: ({ byMs }) => {
    Date.now = () => wall() + byMs;
  },
};

void supervisor.start().then(
  ({ keeperPid }) => {
    tell({ ready: keeperPid });
    createInterface(process.stdin).on('line', (line) => {
      const request = JSON.parse(line);
      void (async () => {
        try {
          tell({ done: request.id, result: (await DO[request.op](request)) ?? null });
        } catch (error) {
          tell({ done: request.id, error: error.code ?? String(error) });
        }
      })();
    });
  },
  (error) => {
    tell({ failed: `${error.code} ${error.message}` });
    process.exitCode = 1;
  },
);
