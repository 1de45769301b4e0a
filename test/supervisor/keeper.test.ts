// Lane: patient

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';

import { ExitMonitor } from '../../src/index.js';
import { Keeper, type RunOptions } from '../../src/supervisor/index.js';
import { MemoryFolder } from '../support/bpffs';
import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { KeeperHost, processesWith } from '../support/keeper';
import { kill, killGroup } from '../support/kill';
import { itAsRecorder, itAsRoot, itAsRootOfHost } from '../support/privilege';
import { program } from '../support/programs';
import { roomForProcesses } from '../support/room';
import { isRunning } from '../support/supervisor';
import { until } from '../support/wait';

const shell = (id: string, script: string, more: Partial<RunOptions> = {}): RunOptions => ({
  id,
  command: 'sh',
  args: ['-c', script],
  ...more,
});

/** What a process has written into a file, once it is whole. */
const written = (path: string) =>
  until(`${path} to be written`, () => {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    return text.endsWith('\n') ? text : null;
  });

/** How many files a process may have open, and to how many it may raise that. */
function openFilesOf(pid: number | 'self'): number[] {
  const text = readFileSync(`/proc/${pid}/limits`, 'utf8');
  return (/^Max open files +(\d+) +(\d+)/m.exec(text) ?? []).slice(1).map(Number);
}

const MODES: readonly (readonly [string, jest.It, Partial<RunOptions>])[] = [
  ['without a cgroup', it, { cgroup: null }],
  [
    'in a cgroup',
    itWithCgroup,
    CGROUP2 === undefined ? {} : { cgroup: `${CGROUP2}/exitwatch-test-${process.pid}` },
  ],
];

describe.each(MODES)('a run %s', (_, itHere, mode) => {
  itHere('ends with the status of waitpid', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.start(shell('exits', 'exit 7', mode));
    await host.keeper.start(shell('aborts', 'ulimit -c 0; kill -ABRT $$', mode));
    expect(await host.end('exits')).toMatchObject({
      ...{ how: 'exited', exitCode: 7, source: 'keeper', isRepeated: false },
    });
    expect(await host.end('aborts')).toMatchObject({ how: 'killed', signal: 'SIGABRT' });
    const { livedMs, usage, isStored } = host.keeper.run('exits') ?? {};
    expect(livedMs).toBeGreaterThanOrEqual(0);
    expect(usage?.maxRssBytes).toBeGreaterThan(0);
    expect(isStored).toBe(true);
  });

  itHere('starts once for an id, and tells its end until it is forgotten', async () => {
    await using host = await KeeperHost.open();
    const marks = host.path('marks');
    const options = shell('once', `echo $$ >> ${marks}; exit 3`, mode);
    const [first, second] = await Promise.all([
      host.keeper.start(options),
      host.keeper.start(options),
    ]);
    expect(second.pid).toBe(first.pid);
    await host.end('once');
    expect((await host.keeper.start(options)).state).toBe('ended');
    host.ended.clear();
    await host.reopen();
    expect(await host.end('once')).toMatchObject({ how: 'exited', exitCode: 3, isRepeated: true });
    expect(readFileSync(marks, 'utf8')).toBe(`${first.pid}\n`);
    await until('nothing to be left', () => host.keeper.run('once')?.hasMembers === false);
    await host.keeper.forget('once');
    await host.reopen();
    expect(host.keeper.runs()).toEqual([]);
  });

  itHere('that cannot be executed is an error, and nothing remains of it', async () => {
    await using host = await KeeperHost.open();
    const start = (more: Partial<RunOptions>) =>
      host.keeper.start({ id: 'bad', command: 'true', ...mode, ...more });
    const failed = { code: 'ERR_EXITWATCH_START_FAILED' };
    await expect(start({ command: '/nosuch' })).rejects.toMatchObject({ ...failed, errno: 2 });
    // A folder of PATH that may not be searched would make it EACCES (execvp(3)).
    const env = { PATH: '/usr/bin:/bin' };
    await expect(start({ command: 'nosuch', env })).rejects.toMatchObject({ ...failed, errno: 2 });
    await expect(start({ command: '/etc/passwd' })).rejects.toMatchObject({ ...failed, errno: 13 });
    await expect(start({ cwd: '/nosuch' })).rejects.toMatchObject({ ...failed, syscall: 'cwd' });
    await expect(start({ envFile: '/nosuch' })).rejects.toMatchObject(failed);
    await expect(start({ logs: { stdout: '/nosuch/log' } })).rejects.toMatchObject({
      ...{ ...failed, syscall: 'stdout' },
    });
    expect(host.keeper.runs()).toEqual([]);
  });

  itHere('SV-05, SV-12, SV-19: is stopped with all that it has started', async () => {
    await using host = await KeeperHost.open();
    const word = `stop-${process.pid}-${Math.random()}`;
    // The leader goes at once; a grandchild has a session of its own, ignores TERM, and has the pipe.
    const script = `(trap '' TERM; setsid sh -c 'trap "" TERM; while :; do sleep 1; done' ${word} &)
      sleep 1000 & exec sleep 1001`;
    await host.keeper.start(shell('tree', script, mode));
    await until('the grandchild to run', () => processesWith(word).length > 0);
    const stopped = await host.keeper.stop('tree', { graceMs: 200 });
    expect(stopped).toEqual({ id: 'tree', isGone: true, wasKilled: true, left: [] });
    expect(processesWith(word)).toEqual([]);
    expect(await host.end('tree')).toMatchObject({ how: 'killed', signal: 'SIGTERM' });
    expect(await host.keeper.stop('tree')).toMatchObject({ isGone: true, wasKilled: false });
  });

  itHere('what it leaves behind is known, and can be stopped later', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.start(shell('leaves', 'setsid sleep 1000 & exit 0', mode));
    await host.end('leaves');
    expect(await host.keeper.members('leaves')).toHaveLength(1);
    await expect(host.keeper.forget('leaves')).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_BUSY',
    });
    await host.reopen();
    expect(host.keeper.run('leaves')?.hasMembers).toBe(true);
    expect(await host.keeper.stop('leaves')).toMatchObject({ isGone: true, wasKilled: false });
    await host.untilEmpty('leaves');
  });

  itHere('a second stop can shorten the grace', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.start(
      shell('stays', `trap '' TERM; echo > ${host.path('up')}; while :; do sleep 1; done`, mode),
    );
    await written(host.path('up'));
    const long = host.keeper.stop('stays', { graceMs: 1_000_000 });
    const short = host.keeper.stop('stays', { graceMs: 10 });
    expect(await Promise.all([long, short])).toMatchObject([{ isGone: true }, { wasKilled: true }]);
  });

  itHere('is paused and resumed as a whole', async () => {
    await using host = await KeeperHost.open();
    const count = host.path('count');
    await host.keeper.start(
      shell(
        'counts',
        `(setsid sh -c 'while :; do echo >> ${count}; sleep 0.01; done' &); sleep 1000`,
        mode,
      ),
    );
    await written(count);
    expect(await host.keeper.pause('counts')).toBe(true);
    const sizes = async () => {
      const { size } = statSync(count);
      await new Promise((resolve) => setTimeout(resolve, 50));
      return statSync(count).size === size;
    };
    await until('it to be paused', sizes);
    expect(await host.keeper.resume('counts')).toBe(true);
    const { size } = statSync(count);
    await until('it to go on', () => statSync(count).size > size);
    await host.keeper.pause('counts');
    expect(await host.keeper.stop('counts')).toMatchObject({ isGone: true });
  });

  itHere('SV-13: inherits neither descriptors, signals, priorities nor a terminal', async () => {
    await using host = await KeeperHost.open();
    const facts = host.path('facts');
    const script = `{ ls /proc/self/fd | tr '\\n' ' '; grep -E '^Sig(Blk|Ign)' /proc/self/status;
      cat /proc/self/oom_score_adj; nice; umask; pwd; cut -d' ' -f5-7 /proc/$$/stat; echo $$; } > ${facts}.new
      mv ${facts}.new ${facts}; sleep 1000`;
    const { pid } = await host.keeper.start(shell('facts', script, { ...mode, cwd: '/usr' }));
    const lines = (await written(facts)).trimEnd().split('\n');
    expect(lines[0]).toMatch(/^0 1 2 3 SigBlk:\t0{16}$/); // 3: the folder that ls reads
    expect(lines.slice(1, 6)).toEqual([
      expect.stringMatching(/^SigIgn:\t0{16}$/),
      '0',
      '0',
      '0022',
      '/usr',
    ]);
    expect(lines[6]).toBe(`${pid} ${pid} 0`); // group, session, terminal
    expect(readlinkSync(`/proc/${pid}/fd/0`)).toBe('/dev/null');
    // Node.js has raised our own limit to the highest.
    const [, highest = 0] = openFilesOf('self');
    expect(openFilesOf(pid ?? 0)).toEqual([highest < 524_288 ? highest : 1024, highest]);
  });

  itHere('may have as many files open as it is told', async () => {
    await using host = await KeeperHost.open();
    const sleeps = { command: 'sleep', args: ['1000'], ...mode };
    const { pid } = await host.keeper.start({ id: 'few', openFiles: 16, ...sleeps });
    expect(openFilesOf(pid ?? 0)).toEqual([16, openFilesOf('self')[1]]);
    const most = { id: 'most', openFiles: 2 ** 31 - 64, ...sleeps };
    await expect(host.keeper.start(most)).rejects.toMatchObject({ syscall: 'openFiles', errno: 1 });
  });

  itHere('CS-29: has a file for each of its outputs, or one for both', async () => {
    await using host = await KeeperHost.open();
    const [out, err, both] = [host.path('out'), host.path('err'), host.path('both')];
    const say = 'echo one; echo two >&2';
    writeFileSync(out, 'before\n');
    await host.keeper.start(shell('a', say, { ...mode, logs: { stdout: out, stderr: err } }));
    await host.keeper.start(shell('b', say, { ...mode, logs: { stdout: both, stderr: both } }));
    await host.end('a');
    await host.end('b');
    expect(readFileSync(out, 'utf8')).toBe('before\none\n');
    expect(readFileSync(err, 'utf8')).toBe('two\n');
    expect(readFileSync(both, 'utf8')).toBe('one\ntwo\n');
    const small = { ...mode, logs: { stdout: out, maxBytes: 5, keep: 2 } };
    for (const id of ['c', 'd', 'e']) {
      await host.keeper.start(shell(id, `echo run ${id}`, small));
      await host.end(id);
    }
    const files = [out, `${out}.1`, `${out}.2`].map((path) => readFileSync(path, 'utf8'));
    expect(files).toEqual(['run e\n', 'run d\n', 'run c\n']);
    expect(existsSync(`${out}.3`)).toBe(false);
  });

  itHere('a rotation takes the number that an interrupted one has left free', async () => {
    await using host = await KeeperHost.open();
    const out = host.path('out');
    const write = (texts: Record<string, string>) => {
      for (const [end, text] of Object.entries(texts)) writeFileSync(`${out}${end}`, text);
    };
    const read = () =>
      ['', '.1', '.2', '.3', '.4'].map((end) =>
        existsSync(`${out}${end}`) ? readFileSync(`${out}${end}`, 'utf8') : null,
      );
    write({ '': 'now\n', '.1': 'one\n', '.3': 'three\n' });
    const logs = { stdout: out, maxBytes: 1, keep: 5 };
    await host.keeper.start({ id: 'a', command: 'sleep', args: ['1000'], logs, ...mode });
    expect(read()).toEqual(['', 'now\n', 'one\n', 'three\n', null]);
    rmSync(`${out}.2`);
    write({ '': 'later\n' });
    await host.keeper.rotateLog('a', out, 5);
    expect(read()).toEqual(['', 'later\n', 'now\n', 'three\n', null]);
  });

  itHere('ES-21: writes its log while nobody else lives', async () => {
    await using host = await KeeperHost.open();
    const log = host.path('log');
    await host.keeper.start(
      shell('speaks', 'while :; do echo x; sleep 0.01; done', { ...mode, logs: { stdout: log } }),
    );
    kill(host.keeperPid, 'SIGKILL');
    await host.keeper.close();
    const { size } = statSync(log);
    await until('the log to grow', () => statSync(log).size > size + 10);
    await host.reopen();
    expect(host.keeper.run('speaks')).toMatchObject({ state: 'running', isLost: true });
    expect(await host.keeper.stop('speaks')).toMatchObject({ isGone: true });
  });

  itHere('is ready when it says so, and only it can say so', async () => {
    await using host = await KeeperHost.open();
    const go = host.path('go');
    const script = `echo "$NOTIFY_SOCKET" > ${host.path('address')}
      while [ ! -e ${go} ]; do sleep 0.05; done
      python3 -c 'import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"READY=1\\nSTATUS=serving =\\nX=1", "\\0" + os.environ["NOTIFY_SOCKET"][1:])'
      sleep 1000`;
    await host.keeper.start(shell('tells', script, { ...mode, notify: true }));
    const address = (await written(host.path('address'))).trim();
    const forge = `import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"STATUS=forged", "\\0" + ${JSON.stringify(address.slice(1))})
import time; time.sleep(1000)`;
    const stranger = spawn('python3', ['-c', forge]);
    await until('the stranger to have sent', () =>
      /^State:\s+S/m.test(readFileSync(`/proc/${stranger.pid}/status`, 'utf8')),
    );
    writeFileSync(go, '');
    await until('it to be ready', () => host.keeper.run('tells')?.isReady === true);
    expect(host.keeper.run('tells')).toMatchObject({ isReady: true, statusText: 'serving =' });
    await host.reopen();
    expect(host.keeper.run('tells')).toMatchObject({ isReady: true, statusText: 'serving =' });
    expect(host.notified.filter((text) => text.includes('forged'))).toEqual([]);
    stranger.kill('SIGKILL');
    await once(stranger, 'close');
  });
});

it('a run has one NOTIFY_SOCKET, and it is its own', async () => {
  await using host = await KeeperHost.open();
  const out = host.path('out');
  const script = "tr '\\0' '\\n' < /proc/$$/environ | grep -a NOTIFY_SOCKET";
  const env = { NOTIFY_SOCKET: '/run/systemd/notify', PATH: process.env['PATH'] };
  await host.keeper.start(shell('own', script, { env, notify: true, logs: { stdout: out } }));
  await host.end('own');
  expect(readFileSync(out, 'utf8')).toMatch(/^NOTIFY_SOCKET=@exitwatch\/[0-9a-f]+\n$/);
});

it('what systemd gave to the supervisor is not inherited', async () => {
  await using host = await KeeperHost.open();
  const out = host.path('out');
  const given = { NOTIFY_SOCKET: '@x', WATCHDOG_USEC: '1', LISTEN_FDS: '1', GIVEN: 'to all' };
  Object.assign(process.env, given);
  try {
    await host.keeper.start({ id: 'env', command: 'env', logs: { stdout: out } });
  } finally {
    for (const name of Object.keys(given)) Reflect.deleteProperty(process.env, name);
  }
  await host.end('env');
  const names = readFileSync(out, 'utf8').match(/^(NOTIFY_|WATCHDOG_|LISTEN_|GIVEN=).*/gm);
  expect(names).toEqual(['GIVEN=to all']);
});

describe('a keeper', () => {
  itAsRootOfHost('joins the end with who sent the signal', async () => {
    await using monitor = new ExitMonitor();
    await monitor.start();
    await using host = await KeeperHost.open({ monitor });
    const { pid } = await host.keeper.start({ id: 'victim', command: 'sleep', args: ['1000'] });
    const killer = spawn('sh', ['-c', `kill -9 ${pid}; exec sleep 1000`]);
    const exit = await host.end('victim');
    expect(exit).toMatchObject({
      ...{ how: 'killed', signal: 'SIGKILL', source: 'keeper', traced: true },
      sender: { pid: killer.pid, name: 'sh' },
    });
    killer.kill('SIGKILL');
    await once(killer, 'close');
  });

  it('MK-22, CS-17: its runs survive the end of its client and of that one’s group', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.close();
    const script = `
      const { Keeper } = require(${JSON.stringify(require.resolve('../../dist/supervisor/index.js'))});
      (async () => {
        const keeper = new Keeper({ stateDir: ${JSON.stringify(host.stateDir)} });
        const { pid } = await keeper.open();
        const run = await keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
        console.log(JSON.stringify([pid, run.pid]));
        setInterval(() => {}, 1000);
      })();`;
    const client = spawn(process.execPath, ['-e', script], { detached: true });
    const [line] = (await once(client.stdout, 'data')) as [Buffer];
    const [keeperPid, pid] = JSON.parse(line.toString()) as [number, number];
    killGroup(client.pid, 'SIGTERM');
    await once(client, 'close');
    const ready = await host.reopen();
    expect(ready.pid).toBe(keeperPid);
    expect(host.keeper.run('stays')).toMatchObject({ state: 'running', pid, isLost: false });
    kill(pid, 'SIGUSR1');
    expect(await host.end('stays')).toMatchObject({ how: 'killed', signal: 'SIGUSR1' });
  });

  it('MK-20: what is started straight after a stop begins when all of the one before is gone', async () => {
    await using host = await KeeperHost.open();
    // Neither it nor its child goes when asked to.
    const script = `trap '' TERM; sleep 1000 & echo "$$ $!" > ${host.path('pids')}; while :; do wait; done`;
    await host.keeper.start({ id: 'one', command: 'sh', args: ['-c', script] });
    const pids = (await written(host.path('pids'))).trim();
    const { isGone, wasKilled } = await host.keeper.stop('one', { graceMs: 50 });
    const seen = host.path('seen');
    // A zombie is gone: its parent may reap it a moment later.
    const isGoneNow = 'case "$(cat /proc/$pid/stat 2> /dev/null)" in *") Z "*|"") echo gone;; esac';
    const look = `for pid in ${pids}; do ${isGoneNow}; done > ${seen}; exit 0`;
    await host.keeper.start({ id: 'two', command: 'sh', args: ['-c', look] });
    expect(await host.end('two')).toMatchObject({ how: 'exited', exitCode: 0 });
    expect({ isGone, wasKilled }).toEqual({ isGone: true, wasKilled: true });
    expect(readFileSync(seen, 'utf8')).toBe('gone\ngone\n');
  });

  it('CS-14: closing leaves everything running', async () => {
    await using host = await KeeperHost.open();
    const { pid } = await host.keeper.start({ id: 'stays', command: 'sleep', args: ['1000'] });
    await host.keeper.close();
    await host.keeper.close();
    await expect(host.keeper.start({ id: 'x', command: 'true' })).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_CLOSED',
    });
    await host.reopen();
    expect(host.keeper.run('stays')).toMatchObject({ state: 'running', pid });
  });

  itAsRecorder('who ended a run while no keeper was open is known to the next one', async () => {
    using memory = new MemoryFolder();
    await using monitor = new ExitMonitor(memory.options);
    await monitor.start();
    await using host = await KeeperHost.open({ monitor });
    const { pid } = await host.keeper.start({ id: 'web', command: 'sleep', args: ['1000'] });
    await host.keeper.close();
    const killer = spawn('kill', ['-TERM', String(pid)]);
    await once(killer, 'close');
    await until('its end', () => !isRunning(pid));
    await host.reopen();
    expect(await host.end('web')).toMatchObject({
      ...{ signal: 'SIGTERM', source: 'keeper', isRepeated: true, sender: { pid: killer.pid } },
    });
    await host.keeper.forget('web');
    expect(monitor.stats().watches).toBe(0);
  });

  it('who waits for a stop when it is closed is told so', async () => {
    await using host = await KeeperHost.open();
    const args = ['-c', `trap '' TERM; echo > ${host.path('up')}; sleep 1000; sleep 1000`];
    await host.keeper.start({ id: 'stays', command: 'sh', args });
    await until('it to ignore SIGTERM', () => existsSync(host.path('up')));
    const stopped = host.keeper.stop('stays', { graceMs: 50_000 });
    const told = expect(stopped).rejects.toMatchObject({ code: 'ERR_EXITWATCH_CLOSED' });
    // Each is answered after what was asked before: then the stop waits for its grace.
    for (let asked = 0; asked < 3; asked++) await host.keeper.members('stays');
    await host.keeper.close();
    await told;
    await host.reopen();
    expect(host.keeper.run('stays')?.state).toBe('running');
  });

  it('a directory has one client and one keeper at a time', async () => {
    await using host = await KeeperHost.open();
    const second = new Keeper({ stateDir: host.stateDir });
    await expect(second.open()).rejects.toMatchObject({ code: 'ERR_EXITWATCH_IN_USE' });
    const binary = require.resolve('../../build/Release/exitwatch-keeper');
    const other = spawn(binary, ['keep', host.path('keeper')]);
    expect(await once(other, 'close')).toEqual([75, null]);
    expect((await host.reopen()).pid).toBe(host.keeperPid);
  });

  it('is not started in a folder that others can write', async () => {
    await using host = await KeeperHost.open();
    await host.keeper.close();
    await until('the keeper to end', () => !existsSync(`/proc/${host.keeperPid}/exe`));
    chmodSync(host.path('keeper'), 0o777);
    await expect(new Keeper({ stateDir: host.stateDir }).open()).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_KEEPER',
      message: expect.stringContaining('Operation not permitted') as string,
    });
    chmodSync(host.path('keeper'), 0o700);
  });

  itAsRoot('CS-30: drops privileges before the command runs, or refuses root', async () => {
    await using host = await KeeperHost.open();
    chmodSync(host.stateDir, 0o755);
    const facts = host.path('facts');
    writeFileSync(facts, '');
    chmodSync(facts, 0o666);
    const script = `{ id -u; id -g; id -G; } > ${facts}`;
    await host.keeper.start(
      shell('nobody', script, { user: 'nobody', allowRoot: false, cwd: '/' }),
    );
    expect(await host.end('nobody')).toMatchObject({ exitCode: 0 });
    expect(readFileSync(facts, 'utf8').split('\n').slice(0, 3)).toEqual([
      '65534',
      '65534',
      '65534',
    ]);
    await host.keeper.start(shell('numbers', script, { user: 12345, group: 54321, cwd: '/' }));
    expect(await host.end('numbers')).toMatchObject({ exitCode: 0 });
    expect(readFileSync(facts, 'utf8').split('\n').slice(0, 3)).toEqual([
      '12345',
      '54321',
      '54321',
    ]);
    await expect(
      host.keeper.start(shell('root', 'true', { allowRoot: false })),
    ).rejects.toMatchObject({ code: 'ERR_EXITWATCH_START_FAILED', syscall: 'root' });
  });

  it('reads secrets from a file, which stay out of its state', async () => {
    await using host = await KeeperHost.open();
    const file = host.path('secrets');
    writeFileSync(file, '# comment\nTOKEN=hunter2 =x\nPATH=/nowhere\nEMPTY=\nno assignment\n', {
      mode: 0o600,
    });
    const out = host.path('out');
    const script = 'echo "$TOKEN|$PATH|${EMPTY-unset}"';
    await host.keeper.start(
      shell('secret', script, {
        ...{ envFile: file, env: { PATH: '/usr/bin:/bin' }, logs: { stdout: out } },
      }),
    );
    await host.end('secret');
    expect(readFileSync(out, 'utf8')).toBe('hunter2 =x|/usr/bin:/bin|\n');
    expect(readFileSync(host.path('keeper', 'runs'), 'utf8')).not.toContain('hunter2');
  });

  it('ES-17: a command that ends at once has its status, a hundred times', async () => {
    await using host = await KeeperHost.open();
    // Each has a process of the keeper as its parent.
    const atOnce = Math.ceil(roomForProcesses(200) / 2);
    const ids = Array.from({ length: 100 }, (_, i) => `brief${i}`);
    for (let from = 0; from < ids.length; from += atOnce) {
      const some = ids.slice(from, from + atOnce);
      await Promise.all(
        some.map((id, i) => {
          const args = [String(from + i)];
          return host.keeper.start({ id, command: program('mortal'), args, cgroup: null });
        }),
      );
      for (const id of some) await host.end(id);
    }
    expect([...host.ended.values()].every((ends) => ends.length === 1)).toBe(true);
  });

  it.each<[string, Record<string, unknown>]>([
    ['an id with a slash', { id: '../x' }],
    ['an id that begins with a dot', { id: '.x' }],
    ['an id that is too long', { id: 'x'.repeat(101) }],
    ['no command', { command: '' }],
    ['arguments that are no strings', { args: [1] }],
    ['a NUL', { args: ['a\0b'] }],
    ['an environment that is an array', { env: [] }],
    ['a variable with "="', { env: { 'A=B': '' } }],
    ['a relative folder', { cwd: 'here' }],
    ['a user that does not exist', { user: 'no-such-user' }],
    ['a user that is an option', { user: '-u' }],
    ['a mask', { umask: 0o1000 }],
    ['logs of both kinds', { logs: { file: '/tmp/a', stdout: '/tmp/b' } }],
    ['a path with a line feed', { logs: { stdout: '/tmp/a\nb' } }],
    ['an unknown option', { commands: 'true' }],
  ])('refuses %s, and starts nothing', async (_, bad) => {
    await using host = await KeeperHost.open();
    const options = { id: 'ok', command: 'true', ...bad } as RunOptions;
    await expect(host.keeper.start(options)).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_INVALID_OPTION',
    });
    expect(host.keeper.runs()).toEqual([]);
    expect(() => new Keeper({ stateDir: '' })).toThrow(/stateDir/);
  });
});
