// Lane: patient

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';

import { compileKeeper } from '../../src/cli/compile-keeper.js';
import { encodeMessage } from '../../src/supervisor/keeper/message.js';
import { CGROUP2 } from '../support/cgroup2';
import { childrenOf, KeeperHost, rawClient } from '../support/keeper';
import { kill } from '../support/kill';
import { itIf } from '../support/privilege';
import { REPOSITORY } from '../support/programs';
import { until } from '../support/wait';

/** It may be missing outside CI. */
const HAS_VALGRIND = spawnSync('valgrind', ['--version']).status === 0;

const CGROUPS = CGROUP2 === undefined ? [null] : [null, `${CGROUP2}/exitwatch-valgrind`];

/** What valgrind has found in each process; empty if nothing. What it says with `--` is of itself. */
const findingsIn = (folder: string) =>
  readdirSync(folder).map((name) =>
    readFileSync(`${folder}/${name}`, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('=='))
      .join('\n'),
  );

/** Becomes a keeper that runs under valgrind, with all that it forks. */
async function underValgrind(host: KeeperHost): Promise<{ binary: string; folder: string }> {
  const [plain, binary, folder] = [host.path('plain'), host.path('valgrind'), host.path('said')];
  expect(compileKeeper(REPOSITORY, plain, { flags: ['-g'] })).toBe(true);
  mkdirSync(folder);
  const leaks = '--leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite';
  const command = `valgrind -q ${leaks} --log-file=${folder}/%p`;
  writeFileSync(binary, `#!/bin/sh\nexec ${command} ${plain} "$@"\n`);
  chmodSync(binary, 0o755);
  await host.keeper.upgrade(binary);
  return { binary, folder };
}

itIf(HAS_VALGRIND, 'needs valgrind')(
  'a keeper that starts, stops, logs, pauses, is upgraded, forgets and hears garbage is clean under valgrind',
  async () => {
    await using host = await KeeperHost.open();
    const { keeperPid } = host;
    const { binary, folder } = await underValgrind(host);
    for (const cgroup of CGROUPS) {
      const sh = (id: string, script: string) => ({
        id,
        command: 'sh',
        args: ['-c', script],
        cgroup,
      });
      const file = host.path('log');
      await host.keeper.start({ ...sh('writes', 'echo x; exit 7'), logs: { file, maxBytes: 1 } });
      expect(await host.end('writes')).toMatchObject({ exitCode: 7 });
      const more = {
        pidfile: host.path('pid'),
        notify: true,
        env: { A: 'b', PATH: '/usr/bin:/bin' },
      };
      await host.keeper.start({ ...sh('stays', 'sleep 1000 & wait'), ...more });
      await host.keeper.start({ ...sh('lost', 'sleep 1000 & wait'), logs: { stdout: file } });
      await expect(host.keeper.start({ id: 'none', command: '/nosuch' })).rejects.toThrow('exec');
      await host.keeper.rotateLog('lost', file, 2);
      await host.keeper.pause('stays');
      await host.keeper.upgrade(binary);
      await host.keeper.resume('stays');
      if (cgroup === null) kill(childrenOf(keeperPid, 'exitwatch-shim').at(-1), 'SIGKILL');
      expect(await host.keeper.stop('lost')).toMatchObject({ isGone: true });
      const garbage = await rawClient(host);
      garbage.write(
        encodeMessage([
          ['seq', '1'],
          ['op', 'start'],
          ['run', 'bad'],
          ['group', 'x'],
        ]),
      );
      await once(garbage, 'data');
      garbage.write('garbage'.repeat(1000));
      await once(garbage, 'close');
      await host.keeper.stop('stays');
      await host.reopen();
      for (const { id } of host.keeper.runs()) {
        await until(`${id} to be forgotten`, () =>
          host.keeper.forget(id).then(
            () => true,
            () => null,
          ),
        );
      }
      host.ended.clear();
    }
    expect(host.keeperPid).toBe(keeperPid);
    await host.keeper.close(); // it looks for leaks when it ends
    await until('the keeper to end', () => !existsSync(`/proc/${keeperPid}`));
    const findings = findingsIn(folder);
    expect(findings.length).toBeGreaterThan(10); // also of what it has forked
    expect(findings.join('')).toBe('');
  },
  300_000,
);
