// Lane: patient

import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { identify, type ExitEvent } from '../../src';
import {
  IntentLog,
  isAlive,
  readIntents,
  stop,
  writePidfile,
  type StopWait,
} from '../../src/process';

import { newPromise } from '../../src/common/promise-with-resolvers';
import type { ControlStep } from '../../src/process/stop-options';

import { call, callWith } from '../support/command';
import { dead } from '../support/ends';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { carelessParent, LineProcess, program } from '../support/programs';
import { arrives, until } from '../support/wait';

let folder: string;
let pidfile: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-stop-'));
  pidfile = join(folder, 'some.pid');
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

test('a process that obeys ends gracefully, and its pidfile is removed', async () => {
  const child = await mortal();
  await writePidfile(pidfile, child.pid);
  const result = await stop(child.pid, { pidfile });
  expect(result).toMatchObject({
    outcome: 'graceful',
    via: 'signal',
    exit: { pid: child.pid, how: 'killed', signal: 'SIGTERM' },
    warnings: [],
  });
  expect(isAlive(child.pid)).toBe('dead');
  expect(existsSync(pidfile)).toBe(false);
  expect(existsSync(`${pidfile}.id`)).toBe(false);
});

test('a process that ignores the signal is killed after the delay, and its end is confirmed', async () => {
  const child = await mortal('--ignore-term');
  const result = await stop(child.pid, { forceKillAfterDelayMs: 100 });
  expect(result).toMatchObject({ outcome: 'forced', via: 'kill', exit: { signal: 'SIGKILL' } });
  expect(isAlive(child.pid)).toBe('dead');
});

describe('the result says who ended the process', () => {
  const US = { endedByUs: true, endedBy: { pid: process.pid } };

  itAsRoot('exitwatch, with its first signal or with SIGKILL', async () => {
    for (let round = 0; round < 5; round++) {
      const first = await mortal();
      const result = await stop(first.pid);
      expect(result).toMatchObject({ ...US, via: 'signal', exit: { traced: true } });
      const second = await mortal('--ignore-term');
      const options = { forceKillAfterDelayMs: 20 };
      const killed = await stop(second.pid, options);
      expect(killed).toMatchObject({ ...US, endedBy: { signal: 'SIGKILL' }, via: 'kill' });
    }
  });

  itAsRoot('exitwatch, if the process raises the signal again or exits on it', async () => {
    const start = async (script: string) => {
      const child = new LineProcess(process.execPath, ['-e', `${script}; console.log('ready')`]);
      await child.line();
      return child.pid;
    };
    const server = await start("require('http').createServer().listen(0)");
    expect(await stop(server)).toMatchObject({ ...US, exit: { sender: { pid: server } } });
    const catcher = await start(
      "process.on('SIGUSR2', () => process.exit(0)); setInterval(() => {}, 1e6)",
    );
    const options = { killSignal: 'SIGUSR2' } as const;
    expect(await stop(catcher, options)).toMatchObject({ ...US, exit: { exitCode: 0 } });
  });

  itAsRoot('another process that was faster, or the process itself', async () => {
    const start = async (onTerm: string) => {
      const script = `setInterval(() => {}, 1e6); process.on('SIGTERM', () => { ${onTerm} });`;
      const child = new LineProcess(process.execPath, ['-e', `${script} console.log('ready')`]);
      await child.line();
      return child;
    };
    const deaf = await start("console.log('asked')");
    const stopping = stop(deaf.pid, { forceKillAfterDelayMs: 60_000 });
    expect(await deaf.line()).toBe('asked');
    await new LineProcess('sh', ['-c', `kill -KILL ${deaf.pid}; :`]).ended;
    expect(await stopping).toMatchObject({
      ...{ via: 'signal', endedByUs: false, endedBy: { name: 'sh', signal: 'SIGKILL' } },
    });
    const child = await start('process.abort()');
    expect(await stop(child.pid)).toMatchObject({
      ...{ via: 'signal', endedByUs: false, endedBy: { signal: 'SIGABRT', pid: child.pid } },
    });
  });
});

test('any other signal can be the first step; SIGKILL skips the request', async () => {
  const first = await mortal('--ignore-term');
  expect(await stop(first.pid, { killSignal: 'SIGINT' })).toMatchObject({
    outcome: 'graceful',
    exit: { signal: 'SIGINT' },
  });
  const second = await mortal();
  expect(await stop(second.pid, { killSignal: 'SIGKILL' })).toMatchObject({
    outcome: 'forced',
    via: 'kill',
  });
});

test('a process that survives every step times out, and its pidfile stays', async () => {
  const child = await mortal('--ignore-term');
  await writePidfile(pidfile, child.pid);
  const result = await stop(child.pid, {
    forceKillAfterDelayMs: false,
    confirmTimeoutMs: 50,
    pidfile,
  });
  expect(result).toMatchObject({ outcome: 'timed-out', via: 'signal', exit: null });
  expect(existsSync(pidfile)).toBe(true);
  expect(await release(child)).toBe(0);
});

test('a process that has ended is already gone, by pid and by identity; its pidfile is removed if it exists', async () => {
  const child = await mortal();
  const identity = identify(child.pid);
  if (identity === null) throw new Error('it ended');
  await writePidfile(pidfile, identity);
  await release(child);
  expect(await stop(identity, { pidfile })).toMatchObject({
    outcome: 'already-gone',
    via: null,
    exit: { how: 'unknown', unknownReason: 'gone-before-watch' },
  });
  expect(existsSync(pidfile)).toBe(false);
  expect(await stop(child.pid, { pidfile })).toMatchObject({
    ...{ outcome: 'already-gone', exit: null, warnings: [] },
  });
});

test('a zombie is already gone, with its status, and gets no signal', async () => {
  const parent = carelessParent('exit 7');
  const zombie = Number(await parent.line());
  await dead(zombie);
  expect(await stop(zombie)).toMatchObject({
    ...{ outcome: 'already-gone', via: null, exit: { how: 'exited', exitCode: 7 } },
  });
  parent.child.kill();
});

test('repeated and concurrent stops share one sequence with one outcome', async () => {
  const child = await mortal('--ignore-term');
  const log = join(folder, 'intents');
  const options = { forceKillAfterDelayMs: 100, intentLog: log };
  const results = await Promise.all([
    stop(child.pid, options),
    stop(child.pid, options),
    stop(identify(child.pid) ?? 0, options),
  ]);
  expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['forced']));
  expect(new Set(results.map(({ exit }) => exit)).size).toBe(1);
  const intents = await readIntents(log);
  expect(intents.map(({ what }) => what)).toEqual(['SIGTERM', 'SIGKILL']);
  expect(await stop(child.pid)).toMatchObject({ outcome: 'already-gone' });
});

test('a stop that kills sooner asks nothing again', async () => {
  const script =
    "process.on('SIGTERM', () => console.log('TERM')); setInterval(() => {}, 1000); console.log('ready')";
  const stubborn = new LineProcess(process.execPath, ['-e', script]);
  expect(await stubborn.line()).toBe('ready');
  const log = join(folder, 'intents');
  const patient = stop(stubborn.pid, { forceKillAfterDelayMs: 60_000, intentLog: log });
  expect(await stubborn.line()).toBe('TERM');
  const sooner = { forceKillAfterDelayMs: 300, intentLog: log };
  expect(await stop(stubborn.pid, sooner)).toMatchObject({ outcome: 'forced' });
  await patient;
  expect(await stubborn.rest()).toEqual([]);
  const intents = await readIntents(log);
  expect(intents.map(({ what }) => what)).toEqual(['SIGTERM', 'SIGKILL']);
});

test('a call that is under way is not made again, unless it fails', async () => {
  const child = await mortal('--ignore-term');
  const calls: string[] = [];
  const answers = [newPromise<undefined>(), newPromise<undefined>(), newPromise<undefined>()];
  const control = (i: number, timeoutMs: number): ControlStep[] => {
    const asked = () => {
      calls.push(String(i));
      return answers[i]?.promise ?? Promise.resolve();
    };
    return [{ what: 'powerdown', call: asked, timeoutMs }];
  };
  const patient = stop(child.pid, { control: control(0, 60_000), killSignal: false });
  const ends = [1, 2].map((i) =>
    stop(child.pid, { control: control(i, 50_000 - 1000 * i), forceKillAfterDelayMs: 50 }),
  );
  for (const [i, answer] of answers.entries()) {
    await until(`call ${i}`, () => calls.length > i);
    await setTimeout(50);
    expect(calls).toEqual(['0', '1', '2'].slice(0, i + 1));
    answer.reject(new Error('no'));
  }
  const forced = { outcome: 'forced', via: 'kill' };
  expect(await Promise.all([patient, ...ends])).toMatchObject([forced, forced, forced]);
});

test('a stop whose intent cannot be written yet does not keep another one from asking', async () => {
  const child = await mortal();
  const intentLog = { append: () => new Promise<never>(() => undefined), settle: () => undefined };
  const hanging = new AbortController();
  const first = stop(child.pid, { intentLog: intentLog as never, signal: hanging.signal });
  first.catch(() => undefined);
  expect(await stop(child.pid, { forceKillAfterDelayMs: 1000 })).toMatchObject({
    ...{ outcome: 'graceful', via: 'signal', exit: { signal: 'SIGTERM' } },
  });
  hanging.abort();
});

test('a call that an abort has ended is made by the next stop', async () => {
  const child = await mortal('--ignore-term');
  const calls: string[] = [];
  const control = (name: string, answer: Promise<unknown>): ControlStep[] => {
    const asked = () => {
      calls.push(name);
      return answer;
    };
    return [{ what: 'powerdown', call: asked, timeoutMs: 50_000 }];
  };
  const abort = new AbortController();
  const never = new Promise<never>(() => undefined);
  const first = stop(child.pid, {
    ...{ control: control('first', never), killSignal: false, signal: abort.signal },
  });
  first.catch(() => undefined);
  const no = Promise.reject(new Error('no'));
  no.catch(() => undefined);
  const second = stop(child.pid, { control: control('second', no), forceKillAfterDelayMs: 50 });
  await until('the first call', () => calls.length > 0);
  abort.abort();
  expect(await second).toMatchObject({ outcome: 'forced' });
  expect(calls).toEqual(['first', 'second']);
});

test('an abort ends only its own wait; after the last one no further step follows', async () => {
  const child = await mortal('--ignore-term');
  const impatient = stop(child.pid, {
    signal: AbortSignal.timeout(20),
    forceKillAfterDelayMs: 200,
  });
  const patient = stop(child.pid);
  await expect(impatient).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_ABORTED',
    message: `waiting for the end of process ${child.pid} was aborted`,
  });
  expect(await patient).toMatchObject({ outcome: 'forced' });

  const left = await mortal('--ignore-term');
  await expect(
    stop(left.pid, { signal: AbortSignal.timeout(20), forceKillAfterDelayMs: 100 }),
  ).rejects.toMatchObject({ code: 'ERR_EXITWATCH_ABORTED' });
  await setTimeout(200);
  expect(isAlive(left.pid)).toBe('alive');
  expect(await stop(left.pid, { forceKillAfterDelayMs: 50 })).toMatchObject({ outcome: 'forced' });
});

test('a pidfile that cannot be removed causes a warning', async () => {
  const child = await mortal();
  mkdirSync(`${pidfile}.id`);
  const { outcome, warnings } = await stop(child.pid, { pidfile });
  expect(outcome).toBe('graceful');
  expect(warnings).toMatchObject([{ code: 'pidfile-not-removed' }]);
});

test.each([
  [{ killSignal: 'SIGNOTHING' }],
  [{ killSignal: 15 }],
  [{ forceKillAfterDelayMs: -1 }],
  [{ confirmTimeoutMs: 1.5 }],
  [{ control: 'stop' }],
  [{ killSignal: false }],
  [{ killSignal: false, control: [] }],
  [{ killSignal: false, control: () => Promise.resolve(), tree: true }],
  [{ killSignal: true }],
  [{ pidfile: 7 }],
  [{ intentLog: {} }],
  [{ timeout: 5 }],
  [{ signal: {} }],
])('the options %j are refused, and nothing is signalled', async (options) => {
  const stranger = await mortal('--stranger');
  await expect(stop(stranger.pid, options as object)).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_INVALID_OPTION',
  });
  expect(await release(stranger)).toBe(0);
});

test('a step that cannot be written down is not taken', async () => {
  const stranger = await mortal('--stranger');
  for (const intentLog of [join(folder, 'nowhere', 'log'), folder, '/dev/full']) {
    await expect(stop(stranger.pid, { intentLog })).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_INTENT_LOG',
    });
  }
  expect(await release(stranger)).toBe(0);
});

test('each step is written down before it is taken, and its outcome afterwards', async () => {
  const log = new IntentLog(join(folder, 'intents'));
  const child = await mortal('--ignore-term');
  const before: unknown[] = [];
  const control = async () => {
    before.push(...(await readIntents(log.path)));
    throw new Error('no');
  };
  await stop(child.pid, { control, forceKillAfterDelayMs: 500, intentLog: log, reason: 'a test' });
  expect(before).toMatchObject([{ what: 'control', outcome: 'pending' }]);
  expect(await readIntents(log.path)).toMatchObject([
    { what: 'control', outcome: 'uncertain', why: 'a test', identity: { pid: child.pid } },
    { what: 'SIGTERM', outcome: 'delivered', who: { identity: { pid: process.pid } } },
    { what: 'SIGKILL', outcome: 'delivered' },
  ]);
  await log.close();
});

test('a step whose process ends while it is written down is settled as superseded and not taken', async () => {
  const child = await mortal('--stranger');
  const settled: string[] = [];
  const slow = {
    append: async () => {
      await release(child);
      await setTimeout(50);
      return 'an-intent';
    },
    settle: (id: string, outcome: string) => {
      settled.push(`${id} ${outcome}`);
      return Promise.resolve();
    },
  };
  const result = await stop(child.pid, { intentLog: slow });
  expect(result).toMatchObject({ outcome: 'already-gone', exit: { exitCode: 0 } });
  expect(settled).toEqual(['an-intent superseded']);
});

describe('a control call', () => {
  let server: Server;
  let socket: string;

  beforeEach(async () => {
    socket = join(folder, 'control');
    server = createServer();
    await arrives(`a server at ${socket}`, once(server.listen(socket), 'listening'));
  });

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  /** Asks over the socket, as one would ask a hypervisor. */
  const ask = (signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      const asking = request(
        { socketPath: socket, path: '/stop', method: 'POST', signal },
        (response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => (text += chunk.toString()));
          response.on('end', () => {
            if (response.statusCode === 200) resolve(text);
            else reject(new Error(`status ${response.statusCode ?? 0}`));
          });
          response.on('error', reject);
        },
      );
      asking.on('error', reject);
      asking.end();
    });

  test('that the process ignores is followed by the next step, which is announced in advance', async () => {
    const child = await mortal('--ignore-term');
    const step = (what: 'powerdown' | 'quit') => ({
      ...{ what, call: () => Promise.resolve(), timeoutMs: 50 },
    });
    const told: unknown[] = [];
    const onWait = ({ via, next }: StopWait) => told.push([via, next]);
    const control = [step('powerdown'), step('quit')];
    const options = { control, forceKillAfterDelayMs: 50, onWait };
    expect(await stop(child.pid, options)).toMatchObject({ outcome: 'forced' });
    expect(told.slice(0, 3)).toEqual([
      ['control', 'control'],
      ['control', 'SIGTERM'],
      ['signal', 'SIGKILL'],
    ]);
  });

  describe('that no signal follows', () => {
    const alone = { killSignal: false, forceKillAfterDelayMs: 2000 } as const;

    test('and whose answer is lost because the process ends of it is a success', async () => {
      const child = await mortal();
      const control = () => {
        void setTimeout(200).then(() => release(child));
        return Promise.reject(new Error('socket hang up'));
      };
      const options = { ...alone, forceKillAfterDelayMs: 10_000, control };
      const result = await stop(child.pid, options);
      expect(result).toMatchObject({
        ...{ outcome: 'graceful', via: 'control', exit: { exitCode: 0 } },
        warnings: [{ code: 'control-failed', detail: 'socket hang up' }],
      });
    });

    test('times out if the process ignores it', async () => {
      const child = await mortal('--stranger');
      server.on('request', (_, response) => response.end('stopping'));
      const waits: unknown[] = [];
      const onWait = (wait: { next: unknown }) => waits.push(wait.next);
      expect(await stop(child.pid, { ...alone, control: ask, onWait })).toMatchObject({
        ...{ outcome: 'timed-out', via: 'control', warnings: [] },
      });
      expect(waits).toEqual([null]);
      expect(await release(child)).toBe(0);
    });

    test('rejects with its own error if it fails', async () => {
      const child = await mortal('--stranger');
      server.on('request', (_, response) => {
        response.statusCode = 500;
        response.end('no');
      });
      const log = join(folder, 'intents');
      const failing = stop(child.pid, { ...alone, control: ask, intentLog: log });
      await expect(failing).rejects.toThrow('status 500');
      expect(await readIntents(log)).toMatchObject([{ outcome: 'uncertain' }]);
      expect(await release(child)).toBe(0);
    });

    test('is recorded as not delivered if nothing listens', async () => {
      const child = await mortal('--stranger');
      const log = join(folder, 'intents');
      const nobody = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOENT' }));
      const failing = stop(child.pid, { ...alone, control: nobody, intentLog: log });
      await expect(failing).rejects.toThrow('no');
      expect(await readIntents(log)).toMatchObject([{ outcome: 'not-delivered' }]);
      expect(await release(child)).toBe(0);
    });
  });

  test('that ends the process is reported as how it ended', async () => {
    const child = await mortal('--ignore-term');
    server.on('request', (_, response) => {
      child.child.stdin.end();
      response.end('stopping');
    });
    expect(await stop(child.pid, { control: ask })).toMatchObject({
      outcome: 'graceful',
      via: 'control',
      exit: { how: 'exited', exitCode: 0 },
      warnings: [],
    });
  });

  test.each([
    [
      'answers with an error',
      'control-failed',
      (response: import('node:http').ServerResponse) => {
        response.statusCode = 500;
        response.end('no');
      },
    ],
    [
      'ends in the middle of its reply',
      'control-failed',
      (response: import('node:http').ServerResponse) => {
        response.writeHead(200, { 'content-length': 100 });
        response.write('half');
        response.socket?.destroy();
      },
    ],
  ] as const)('that %s is followed by the signal at once', async (_, code, answer) => {
    const child = await mortal();
    server.on('request', (_request, response) => {
      answer(response);
    });
    const result = await stop(child.pid, { control: ask, forceKillAfterDelayMs: 30_000 });
    expect(result).toMatchObject({
      outcome: 'graceful',
      via: 'signal',
      exit: { signal: 'SIGTERM' },
      warnings: [{ code }],
    });
  });

  test('that cannot be reached is followed by the signal at once', async () => {
    const child = await mortal();
    server.close();
    const result = await stop(child.pid, { control: ask, forceKillAfterDelayMs: 30_000 });
    expect(result).toMatchObject({ outcome: 'graceful', via: 'signal' });
  });

  test('that never answers is abandoned after its time', async () => {
    const child = await mortal();
    const result = await stop(child.pid, { control: ask, forceKillAfterDelayMs: 2000 });
    const detail = 'the control call was not answered within 2000 ms';
    expect(result).toMatchObject({ via: 'signal', warnings: [{ code: 'control-failed', detail }] });
  });

  test('that says "stopped" about a living process is not believed', async () => {
    const child = await mortal('--ignore-term');
    server.on('request', (_, response) => response.end('stopped'));
    const result = await stop(child.pid, { control: ask, forceKillAfterDelayMs: 100 });
    expect(result).toMatchObject({ outcome: 'forced', via: 'kill', exit: { signal: 'SIGKILL' } });
  });

  test('that fails because the process dies of it is reported as how it ended', async () => {
    const child = await mortal();
    const control = async () => {
      child.child.stdin.end();
      await child.ended;
      throw new Error('end of file');
    };
    expect(await stop(child.pid, { control })).toMatchObject({
      outcome: 'graceful',
      via: 'control',
      exit: { exitCode: 0 },
    });
  });
});

describe('the commands', () => {
  test('stop exits with 0 when the process is gone, and removes the pidfile', async () => {
    const child = await mortal();
    await writePidfile(pidfile, child.pid);
    const { code, lines } = await call('stop', pidfile, '--reason', 'a test', '--json');
    expect(code).toBe(0);
    const result = JSON.parse(lines[0] ?? 'null') as { exit: ExitEvent };
    expect(result).toMatchObject({ event: 'stop', outcome: 'graceful', via: 'signal' });
    expect(result.exit).toMatchObject({ pid: child.pid, signal: 'SIGTERM' });
    expect(existsSync(pidfile)).toBe(false);
    expect((await call('stop', pidfile)).code).toBe(127);
    // The pid of a process that has only just ended is not given out again soon.
    const last = new LineProcess('true', []);
    await last.ended;
    expect((await call('stop', String(last.pid))).code).toBe(0);
  });

  test('stop kills a process that ignores the signal, after --kill-after', async () => {
    const child = await mortal('--ignore-term');
    const { code, lines } = await call('stop', String(child.pid), '--kill-after', '100ms');
    expect(code).toBe(0);
    expect(lines[0]).toMatch(/killed SIGKILL.*by SIGKILL$/);
  });

  itAsRoot('stop explains why it may not signal', async () => {
    const ours = await mortal();
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const { code, stderr } = await callWith(nobody, 'stop', String(ours.pid));
    expect(code).toBe(125);
    expect(stderr).toContain('another user');
    expect(await release(ours)).toBe(0);
  });

  itAsRoot('stop works without privilege for one’s own processes, and in a container', async () => {
    const nobody = [
      'setpriv',
      '--reuid=65534',
      '--regid=65534',
      '--clear-groups',
      '--bounding-set=-all',
    ];
    const own = new LineProcess(nobody[0] ?? '', [...nobody.slice(1), program('mortal')]);
    await own.line();
    expect((await callWith(nobody, 'stop', String(own.pid))).code).toBe(0);
    expect(isAlive(own.pid)).toBe('dead');

    const script = `${program('mortal')} <&- & sleep 1000 & P=$!; "$@" stop $P && ! kill -0 $P 2>/dev/null`;
    const container = ['unshare', '-pf', '--mount-proc', 'sh', '-c', script, 'sh'];
    const { code, lines } = await callWith(container);
    expect({ code, lines }).toMatchObject({ code: 0 });
  });

  test('stop says that it could not hold the process, without pidfds', async () => {
    const child = await mortal();
    const without = [program('without'), 'pidfd_open', 'errno'];
    const { code, stderr } = await callWith(without, 'stop', String(child.pid));
    expect(code).toBe(0);
    expect(stderr).toContain('its pid');
  });

  test('alive exits with 0, 1 or 125', async () => {
    const child = await mortal();
    expect(await call('alive', String(child.pid))).toMatchObject({ code: 0, lines: ['alive'] });
    const mismatch = await call('alive', String(child.pid), '--executable', 'sleep');
    expect(mismatch).toMatchObject({ code: 125, lines: ['unknown'] });
    await writePidfile(pidfile, child.pid);
    expect(await call('alive', pidfile)).toMatchObject({ code: 0 });
    await release(child);
    expect(await call('alive', pidfile)).toMatchObject({ code: 1 });
    expect(await call('alive', join(folder, 'missing'))).toMatchObject({
      code: 1,
      lines: ['dead'],
    });
    expect(await call('alive', folder)).toMatchObject({ code: 125 });
  });

  test.each([
    [['stop']],
    [['stop', '1', '2']],
    [['stop', '0']],
    [['stop', '1', '--signal', 'NOTHING']],
    [['stop', '1', '--kill-after', '10s', '--timeout', '5s']],
    [['stop', '1', '--kill-after', '5s', '--timeout', '5s']],
    [['stop', '1', '--signal', 'RTMIN+31']],
    [['alive']],
    [['alive', '1', '--for', '3s']],
  ])('%j is wrong usage', async (args) => {
    expect((await call(...args)).code).toBe(2);
  });
});
