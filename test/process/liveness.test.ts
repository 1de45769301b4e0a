// Lane: patient

import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify, waitForExit } from '../../src';
import { exists, isAlive, kill, stop, terminate } from '../../src/process';

import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { carelessParent, LineProcess, program, REPOSITORY, run } from '../support/programs';

/** Runs `script` under a command, with dist/process as `process_`. Returns its output. */
async function printed(command: readonly string[], script: string): Promise<string> {
  const prelude = `const process_ = require(${JSON.stringify(join(REPOSITORY, 'dist/process'))});`;
  const [first, ...rest]: string[] = [...command, process.execPath, '-e', prelude + script];
  return (await run(first ?? '', rest)).stdout.trim();
}

test('a living process is alive by pid and by identity, and dead after its end', async () => {
  const child = await mortal();
  const identity = identify(child.pid);
  if (identity === null) throw new Error('it ended');
  expect(isAlive(child.pid)).toBe('alive');
  expect(isAlive(identity)).toBe('alive');
  await release(child);
  expect(isAlive(child.pid)).toBe('dead');
  expect(isAlive(identity)).toBe('dead');
  expect(
    isAlive({ ...identity, bootId: 'another', id: `another-${child.pid}-${identity.inode ?? 0}` }),
  ).toBe('dead');
});

test('exists() matches an executable by its path, or by its full name even if the kernel truncates it', async () => {
  const child = new LineProcess(program('named-longer-than-15'), []);
  await child.line();
  const { pid } = child;
  expect(exists({ pid, executable: 'named-longer-than-15' })).toBe(true);
  expect(exists({ pid, executable: program('named-longer-than-15') })).toBe(true);
  expect(exists({ pid, executable: 'named-longer-than-16' })).toBe(false);
  expect(exists({ pid, executable: 'named-longer-th' })).toBe(false);
  expect(exists({ pid, executable: '/bin/sh' })).toBe(false);
  child.child.kill();
  await child.ended;
  expect(exists({ pid, executable: 'named-longer-than-15' })).toBe(false);
});

test('exists() is false for a pid that no process has', () => {
  expect(exists({ pid: 0xfffffffc, executable: 'sh' })).toBe(false);
});

test('MK-07: another program with the pid is no match, is not gone either, and gets no signal', async () => {
  const stranger = await mortal('--stranger');
  const target = { pid: stranger.pid, executable: 'something-else' };
  expect(exists(target)).toBe(false);
  for (const act of [terminate(target), kill(target), stop(target)]) {
    await expect(act).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_NOT_VERIFIED',
      message: expect.stringContaining(
        `process ${stranger.pid} runs "${program('mortal')}"`,
      ) as string,
    });
  }
  expect(await release(stranger)).toBe(0);
  for (const act of [terminate(target), kill(target), stop(target)]) {
    expect(await act).toMatchObject({ outcome: 'already-gone', identity: null });
  }
});

test('a later process with the same pid and name is not the recorded one', async () => {
  const stranger = await mortal('--stranger');
  const identity = identify(stranger.pid);
  if (identity === null) throw new Error('it ended');
  const inode = (identity.inode ?? 1) - 1;
  const before = { ...identity, inode, id: identity.id.replace(/\d+$/, String(inode)) };
  expect(isAlive(before)).toBe('dead');
  expect(await kill(before)).toMatchObject({ outcome: 'already-gone' });
  expect(await release(stranger)).toBe(0);
});

itAsRoot('another user’s process is alive, and may not be signalled', async () => {
  const ours = await mortal();
  const script = `
    const { isAlive, exists, terminate } = process_;
    const pid = ${ours.pid};
    terminate(pid).catch(({ code }) =>
      console.log(isAlive(pid), exists({ pid, executable: 'mortal' }), exists({ pid, executable: 'sh' }), code));
  `;
  const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  expect(await printed(nobody, script)).toBe('alive true false ERR_EXITWATCH_NOT_PERMITTED');
  expect(await release(ours)).toBe(0);
});

test('a zombie is dead; a zombie first thread of a living process is not', async () => {
  const parent = carelessParent('exec sleep 0.01');
  const zombie = Number(await parent.line());
  await waitForExit(zombie, { timeoutMs: 10_000 });
  expect(readFileSync(`/proc/${zombie}/stat`, 'latin1')).toMatch(/\) Z /);
  expect(isAlive(zombie)).toBe('dead');
  expect(exists({ pid: zombie, executable: 'sleep' })).toBe(false);
  parent.child.kill();

  const left = new LineProcess(program('first-left'), []);
  await left.line();
  expect(isAlive(left.pid)).toBe('alive');
  expect(exists({ pid: left.pid, executable: 'first-left' })).toBe(true);
  expect(exists({ pid: left.pid, executable: program('first-left') })).toBe(true);
  left.child.kill('SIGKILL');
});

itAsRoot('a process that cannot be examined is unknown, not dead', async () => {
  const hidden = ['unshare', '-m', 'sh', '-c', 'umount -l /proc; exec "$@"', 'sh'];
  const ours = await mortal();
  const script = `
    const { isAlive, exists, kill } = process_;
    const pid = ${ours.pid};
    kill(pid).catch(({ code }) => console.log(isAlive(pid), exists({ pid, executable: 'mortal' }), code));
  `;
  expect(await printed(hidden, script)).toMatch(/^unknown unknown ERR_EXITWATCH_/);
  expect(await release(ours)).toBe(0);
});

test('terminate() requests an end and promises no more; kill() ends the process', async () => {
  const stubborn = await mortal('--ignore-term');
  expect(await terminate(stubborn.pid)).toMatchObject({ outcome: 'requested', isAtomic: true });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isAlive(stubborn.pid)).toBe('alive');
  const end = waitForExit(stubborn.pid, { timeoutMs: 10_000 });
  expect(await kill(stubborn.pid)).toMatchObject({ outcome: 'requested' });
  expect(await end).toMatchObject({ signal: 'SIGKILL' });
  expect(await kill(stubborn.pid)).toMatchObject({ outcome: 'already-gone' });
});

test('init and this process are refused, and a pid never selects a group', async () => {
  for (const pid of [1, process.pid]) {
    await expect(terminate(pid)).rejects.toMatchObject({ code: 'ERR_EXITWATCH_REFUSED' });
  }
  for (const pid of [0, -1, 1.5, NaN]) {
    await expect(kill(pid, { force: true })).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_INVALID_PID',
    });
  }
});

test('a name selects any file with that name, a path only that very file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-liveness-'));
  const copy = join(folder, 'mortal');
  copyFileSync(program('mortal'), copy);
  const other = new LineProcess(copy, []);
  await other.line();
  const { pid } = other;
  const original = { pid, executable: program('mortal') };
  expect(exists(original)).toBe(false);
  for (const act of [terminate(original), kill(original)]) {
    await expect(act).rejects.toMatchObject({ code: 'ERR_EXITWATCH_NOT_VERIFIED' });
  }
  // A signal would have ended it with another status.
  expect(await release(other)).toBe(0);

  const again = new LineProcess(copy, []);
  await again.line();
  const end = waitForExit(again.pid, { timeoutMs: 10_000 });
  expect(exists({ pid: again.pid, executable: 'mortal' })).toBe(true);
  const sent = await kill({ pid: again.pid, executable: 'mortal' });
  expect(sent).toMatchObject({ outcome: 'requested', identity: { pid: again.pid } });
  expect(await end).toMatchObject({ signal: 'SIGKILL' });
  rmSync(folder, { recursive: true });
});

test('without pidfds the process is checked before the signal, and the result says so', async () => {
  const child = await mortal();
  const script = `
    process_.terminate(${child.pid}).then(({ outcome, isAtomic }) => console.log(outcome, isAtomic));
  `;
  const without = [program('without'), 'pidfd_open', 'errno'];
  expect(await printed(without, script)).toBe('requested false');
  expect(await child.ended).toBeNull();
});
