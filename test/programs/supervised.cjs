// A supervisor that does what its stdin says, a JSON object a line, and prints what happens. With
// KILL_AT=N and KILL_WHEN=before, amid or after, it kills itself at the Nth durable write.
'use strict';
const fs = require('node:fs');
const { performance } = require('node:perf_hooks');
const { createInterface } = require('node:readline');

let writes = Number(process.env.KILL_AT ?? 0);
const when = process.env.KILL_WHEN;
const real = { ...fs };
const die = () => process.kill(process.pid, 'SIGKILL');
const isOurs = (path) => String(path).includes('/services/');

for (const name of ['renameSync', 'rmSync']) {
  fs[name] = (...args) => {
    const isIt = isOurs(args[0]) && --writes === 0;
    if (isIt && when !== 'after') die();
    real[name](...args);
    if (isIt) die();
  };
}

/** Files that are appended to, and whether that is the write at which to die. */
const appended = new Map();

fs.openSync = (path, flags, ...rest) => {
  const file = real.openSync(path, flags, ...rest);
  const { O_APPEND, O_CREAT } = fs.constants;
  appended.delete(file);
  if (isOurs(path) && (flags & (O_APPEND | O_CREAT)) === O_APPEND) appended.set(file, false);
  return file;
};

fs.writeSync = (file, bytes, ...rest) => {
  if (appended.has(file)) appended.set(file, --writes === 0);
  if (appended.get(file) !== true || when === 'after') return real.writeSync(file, bytes, ...rest);
  if (when === 'amid') real.writeSync(file, bytes.subarray(0, bytes.length / 2));
  return die();
};

fs.closeSync = (file) => {
  real.closeSync(file);
  if (appended.get(file) === true) die();
  appended.delete(file);
};

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
