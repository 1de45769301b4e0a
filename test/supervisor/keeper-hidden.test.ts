// Lane: patient

// A keeper that is not root's, where /proc hides from it (hidepid=2) what has executed a set-user-ID
// program, also once that is a zombie.
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { childrenOf } from '../support/keeper';
import { kill } from '../support/kill';
import { itAsRoot } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { isRunning } from '../support/supervisor';
import { until } from '../support/wait';

const INDEX = require.resolve('../../dist/supervisor/index.js');
const NOBODY = 65534;

/** Runs a script with `keeper`, `start(args)` and `ended`; the program is a copy of `original`. */
async function whereHidden(
  original: string,
  script: string,
  work: (host: LineProcess) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-hidden-'));
  const command = join(folder, 'copy');
  copyFileSync(original, command);
  chmodSync(command, 0o4755);
  const stateDir = join(folder, 'state');
  mkdirSync(stateDir, { mode: 0o700 });
  chownSync(stateDir, NOBODY, NOBODY);
  chmodSync(folder, 0o755);
  const whole = `
    const { Keeper } = require(${JSON.stringify(INDEX)});
    (async () => {
      const keeper = new Keeper({ stateDir: ${JSON.stringify(stateDir)} });
      const { pid: keeperPid } = await keeper.open();
      const ended = new Promise((resolve) => keeper.on('ended', resolve));
      const empty = new Promise((resolve) => keeper.on('empty', resolve));
      const command = ${JSON.stringify(command)};
      const start = (...args) => keeper.start({ id: 'hidden', command, args, cgroup: null });
      const line = () => new Promise((resolve) => process.stdin.once('data', resolve));
      ${script}
      await empty;
      await keeper.forget('hidden');
      await keeper.close();
      process.exit();
    })();`;
  const hide = 'mount -t proc -o hidepid=2 proc /proc; exec "$@"';
  const host = new LineProcess('unshare', [
    ...['-m', 'sh', '-c', hide, 'sh', 'setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`],
    ...['--clear-groups', process.execPath, '-e', whole],
  ]);
  try {
    await work(host);
    expect(await host.ended).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

itAsRoot('its start is a start, and its end is known', async () => {
  const script = `
    const { pid, state } = await start('30');
    process.kill(pid, 'SIGKILL');
    console.log(state, (await ended).signal);`;
  await whereHidden('/bin/sleep', script, async (host) => {
    expect(await host.line()).toBe('running SIGKILL');
  });
});

itAsRoot('it is found, asked to end, and gone', async () => {
  const script = `
    const { pid } = await start('1000');
    console.log(JSON.stringify(await keeper.members('hidden')), pid);
    const { isGone, wasKilled } = await keeper.stop('hidden');
    console.log(isGone, wasKilled, (await ended).signal);`;
  await whereHidden('/bin/sleep', script, async (host) => {
    const [members = '', pid = ''] = (await host.line())?.split(' ') ?? [];
    expect(JSON.parse(members)).toEqual([{ pid: Number(pid), startTicks: 0, state: '?' }]);
    expect(await host.line()).toBe('true false SIGTERM');
    expect(isRunning(Number(pid))).toBe(false);
  });
});

itAsRoot('a process of the keeper is killed: it is not taken for gone', async () => {
  const script = `
    const { pid } = await start('1000');
    console.log(keeperPid, pid);
    await line();
    await keeper.members('hidden');
    console.log(keeper.run('hidden').state);
    await line();
    const { isGone } = await keeper.stop('hidden', { ask: 'main' });
    console.log(isGone, (await ended).signal);`;
  await whereHidden('/bin/sleep', script, async (host) => {
    const [keeperPid = 0, pid = 0] = (await host.line())?.split(' ').map(Number) ?? [];
    for (const shim of childrenOf(keeperPid)) kill(shim, 'SIGKILL');
    host.child.stdin.write('\n');
    expect(await host.line()).toBe('running');
    expect(isRunning(pid)).toBe(true);
    host.child.stdin.write('\n');
    expect(await host.line()).toBe('true SIGTERM');
    expect(isRunning(pid)).toBe(false);
  });
});

itAsRoot('whoever may not signal it says so', async () => {
  const script = `
    const { pid } = await start('--reuid=0', 'sleep', '1000');
    console.log(pid);
    await line();
    const error = await keeper.stop('hidden', { graceMs: 100, confirmMs: 100 }).catch((error) => error);
    console.log(error.code, error.errno, keeper.run('hidden').state);
    console.log((await ended).signal);`;
  await whereHidden('/usr/bin/setpriv', script, async (host) => {
    const pid = Number(await host.line());
    await until('it to be root’s alone', () =>
      /^Uid:(\t0){4}$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')),
    );
    host.child.stdin.write('\n');
    expect(await host.line()).toBe('ERR_EXITWATCH_NOT_PERMITTED 1 running');
    kill(pid, 'SIGKILL');
    expect(await host.line()).toBe('SIGKILL');
  });
});
