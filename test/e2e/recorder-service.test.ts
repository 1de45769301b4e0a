// Lane: patient

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ExitEvent } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { HAS_CONNECTOR } from '../support/kernel';
import { itUnderSystemd, underSystemd } from '../support/systemd';

const COUNT = 200;
const NOBODY = 65534;

const UNIT = `[Unit]
DefaultDependencies=no
[Service]
Type=exec
User=${NOBODY}
CapabilityBoundingSet=
NoNewPrivileges=yes
ExecStart=${process.execPath} /run/repository/test/programs/stored-watcher.cjs /run/repository /run/test/state /run/test/pids /run/test/results /run/test/bpf/exitwatch
`;

/** Half of the processes exit when the folder `go` exists, and a shell kills the others. */
const SCRIPT = [
  `for i in $(seq 0 ${COUNT / 2 - 1}); do`,
  '  sh -c "until [ -e /run/test/go ]; do sleep 0.2; done; exit $((i % 128))" & echo $!',
  '  sleep 1000 & echo $!',
  'done > /run/test/pids',
  'stat -c %a:%U /run/test/bpf',
  'exitwatch memory --create --owner nobody --state-dir /run/test/state --pin-dir /run/test/bpf/exitwatch',
  'systemctl start watcher',
  'until [ -e /run/test/results.ready ]; do sleep 0.1; done',
  'systemctl kill --signal=KILL --kill-whom=main watcher',
  'while systemctl is-active --quiet watcher; do sleep 0.1; done',
  'touch /run/test/go',
  'sh -c "echo \\$\\$; kill $(sed -n n\\;p /run/test/pids | xargs)"',
  'wait 2>/dev/null',
  'systemctl reset-failed watcher',
  'systemctl start watcher',
  'until [ -e /run/test/results ]; do sleep 0.1; done',
];

itUnderSystemd(
  `a service with a user of its own has the statuses, times and senders of ${COUNT} processes that ended while it did not run`,
  async () => {
    if (!HAS_CONNECTOR) throw new Error('this needs the host’s network namespace');
    using memory = new MemoryFolder(NOBODY);
    chmodSync(memory.path, 0o777);
    writeFileSync(join(memory.path, 'watcher.service'), UNIT);
    const before = Date.now();
    const said = await underSystemd(memory.path, ['watcher.service'], SCRIPT, 'user');
    const after = Date.now();
    expect(said).toEqual([
      '1700:nobody',
      expect.stringMatching(/^created /),
      expect.stringMatching(/^\d+$/),
    ]);
    const killer = Number(said[2]);
    const ready: unknown = JSON.parse(readFileSync(join(memory.path, 'results.ready'), 'utf8'));
    expect(ready).toEqual({ memory: 'recorder', memoryDowngrade: null });
    const lines = readFileSync(join(memory.path, 'results'), 'utf8').trimEnd().split('\n');
    const exits = lines.map((line) => JSON.parse(line) as ExitEvent & { key: string });
    const pids = readFileSync(join(memory.path, 'pids'), 'utf8').trim().split(/\s+/);
    expect(exits).toMatchObject(
      pids.map((pid, i) => ({
        key: `of ${pid}`,
        source: 'recorder',
        traced: true,
        ...(i % 2 === 0
          ? { how: 'exited', exitCode: (i / 2) % 128, sender: null }
          : { how: 'killed', signal: 'SIGTERM', sender: { pid: killer, name: 'sh', uid: 0 } }),
      })),
    );
    const times = exits.map(({ exitedAt }) => Date.parse(String(exitedAt)));
    expect(times.filter((time) => time < before || time > after)).toEqual([]);
  },
);
