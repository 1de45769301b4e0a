// Lane: patient

// The rows of "What happens when …" of docs/supervise.md that command.test.ts does not have.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

import { MemoryFolder } from '../support/bpffs';
import { kill } from '../support/kill';
import { itAsRecorder, itAsRoot } from '../support/privilege';
import { isRunning } from '../support/supervisor';
import { SuperviseHost } from '../support/supervise';
import { until } from '../support/wait';

const sleeper = (name: string, more: object = {}) => ({
  ...{ name, command: 'sleep', args: ['1000'] },
  ...more,
});

test('services go on when their keeper is killed, and another one takes its place', async () => {
  await using host = await SuperviseHost.of(sleeper('web'), sleeper('db'));
  const { pid } = await host.phase('web', 'running');
  const { pid: db } = await host.phase('db', 'running');
  const [keeper = 0] = host.keepers();
  kill(keeper, 'SIGKILL');
  await until('another keeper', () => host.keepers().some((each) => each !== keeper));
  expect(await host.listed('web')).toMatchObject({ pid, phase: 'running', restarts: 0 });
  kill(db, 'SIGKILL');
  await until('another run', async () => {
    const found = await host.listed('db');
    return found.phase === 'running' && found.pid !== db;
  });
  expect((await host.service('stop', 'web')).code).toBe(0);
  expect(isRunning(pid)).toBe(false);
});

test('an upgrade of the package restarts nothing', async () => {
  await using host = await SuperviseHost.of(sleeper('web'));
  const { pid } = await host.phase('web', 'running');
  const [keeper = 0] = host.keepers();
  await host.end();
  await host.start();
  const { code, lines } = await host.service('upgrade-keeper');
  expect({ code, lines }).toEqual({
    code: 0,
    lines: [
      expect.stringMatching(new RegExp(`^the keeper \\(pid ${keeper}\\) is \\S+ now; it was `)),
    ],
  });
  expect(await host.listed('web')).toMatchObject({ pid, phase: 'running', restarts: 0 });
});

itAsRoot('on a full disk services go on, and what cannot be stored is an error', async () => {
  await using host = new SuperviseHost();
  const records = host.own('services');
  mkdirSync(records, { recursive: true, mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0700', 'none', records]);
  const filler = `${records}/filler`;
  try {
    host.write(sleeper('web'), sleeper('db'));
    await host.start();
    const { pid } = await host.phase('web', 'running');
    await host.phase('db', 'running');
    expect(() => {
      for (;;) appendFileSync(filler, Buffer.alloc(4096));
    }).toThrow('ENOSPC');
    // What still has room in its last block is done.
    const refused = await until('the last block to be full', async () => {
      const before = await host.listed('db');
      const verb = before.phase === 'running' ? 'stop' : 'start';
      const { code, stderr } = await host.service(verb, 'db');
      return code === 0 ? null : { before, verb, code, stderr };
    });
    expect(refused).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('no space left on device') as string,
    });
    const { before } = refused;
    const restarted = await host.service('restart', 'db');
    expect(restarted.stderr).toContain('no space left on device');
    kill(pid, 'SIGKILL');
    await host.printed('exit');
    rmSync(filler);
    await until('another run', async () => {
      const found = await host.listed('web');
      return found.phase === 'running' && found.pid !== pid;
    });
    expect((await host.listed('web')).lastEnd).toMatchObject({ signal: 'SIGKILL' });
    // Nobody has asked for what they were told was not done.
    const { pid: db, phase, restarts } = before;
    expect(await host.listed('db')).toMatchObject({ pid: db, phase, restarts });
    await host.service('stop', '--all');
    await host.end();
  } finally {
    execFileSync('umount', ['--lazy', records]);
  }
});

for (const way of ['crash', 'end'] as const) {
  itAsRecorder(`who ended a service while no supervisor was there is known (${way})`, async () => {
    using memory = new MemoryFolder();
    await using host = new SuperviseHost(['--pin-dir', memory.pinDir]);
    host.write(sleeper('web'));
    await host.start();
    const { pid } = await host.phase('web', 'running');
    await host[way]();
    const killer = spawn('kill', ['-TERM', `${pid}`]);
    await once(killer, 'close');
    await until('the end of the service', () => !isRunning(pid));
    await host.start();
    await host.phase('web', 'running');
    const { lastStory } = await host.listed('web');
    expect(lastStory).toMatchObject({ signal: 'SIGTERM', sender: { pid: killer.pid } });
  });
}

itAsRoot(
  'how a service ended before another boot is known, if its keeper has seen it',
  async () => {
    const script = 'while [ ! -e "$0" ]; do sleep 0.05; done; exit 3';
    await using host = new SuperviseHost();
    host.write({ name: 'web', command: 'sh', args: ['-c', script, host.path('go')] });
    await host.start();
    await host.phase('web', 'running');
    await host.crash();
    writeFileSync(host.path('go'), '');
    const journal = () => readFileSync(host.own('keeper', 'runs'), 'latin1');
    await until('its end to be stored', () => /^E web/m.test(journal()), journal);
    for (const keeper of host.keepers()) kill(keeper, 'SIGKILL');
    rmSync(host.path('go'));
    await host.startInAnotherBoot();
    await host.phase('web', 'running');
    const { lastEnd } = await host.listed('web');
    expect(lastEnd).toMatchObject({ reason: 'reboot', how: 'exited', exitCode: 3 });
  },
);

itAsRoot('after another boot all start that nobody has stopped', async () => {
  await using host = await SuperviseHost.of(
    sleeper('web'),
    sleeper('db'),
    { name: 'job', command: 'true', restart: 'never' },
    sleeper('off'),
  );
  const pids = [await host.phase('web', 'running'), await host.phase('db', 'running')];
  await host.phase('job', 'ended');
  await host.service('stop', 'off');
  await host.service('stop', 'db', '--until-reboot');
  await host.crash();
  for (const pid of [...host.keepers(), pids[0]?.pid ?? 0]) kill(pid, 'SIGKILL');
  await host.startInAnotherBoot();
  await host.phase('web', 'running');
  await host.phase('db', 'running');
  expect(await host.listed('off')).toMatchObject({ phase: 'stopped', pid: null });
  expect((await host.listed('web')).lastEnd).toMatchObject({ reason: 'reboot', how: 'unknown' });
  await host.phase('job', 'ended');
  expect(host.of('started').filter(({ service }) => service === 'job')).toHaveLength(2);
});
