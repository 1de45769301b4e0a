// Lane: patient

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ExitEvent } from '../../src';

import { KERNEL } from '../support/kernel';
import { itUnderSystemd, underSystemd } from '../support/systemd';

const COUNT = 200;

const UNIT = `[Unit]
DefaultDependencies=no
[Service]
Type=exec
NotifyAccess=main
FileDescriptorStoreMax=${COUNT + 10}
RestartSec=100ms
Restart=on-failure
ExecStopPost=/bin/sh -c '[ ! -e /run/test/ends-on-stop ] || { touch /run/test/go; sleep 2; }'
ExecStart=${process.execPath} /run/repository/test/programs/stored-watcher.cjs /run/repository /var/lib/watcher /run/test/pids /run/test/results
`;

/** Starts processes that exit when the folder `go` exists, the i-th with i mod 128. */
const SCRIPT = [
  `for i in $(seq 0 ${COUNT - 1}); do`,
  '  sh -c "until [ -e /run/test/go ]; do sleep 0.2; done; exit $((i % 128))" & echo $!',
  'done > /run/test/pids',
  'systemctl start watcher',
  'until [ -e /run/test/results.ready ]; do sleep 0.1; done',
  'systemctl show --property=NFileDescriptorStore watcher',
];

/** They end, and are reaped, while the service does not run. */
const END = ['touch /run/test/go', 'wait', 'until [ -e /run/test/results ]; do sleep 0.1; done'];

describe('a service with a descriptor store', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'exitwatch-store-'));
    writeFileSync(join(folder, 'watcher.service'), UNIT);
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  const ways: [string, string[]][] = [
    [
      'is killed and restarted by systemd',
      ['systemctl kill --signal=KILL --kill-whom=main watcher', ...END],
    ],
    [
      'is restarted',
      ['touch /run/test/ends-on-stop', 'systemctl restart watcher', ...END.slice(1)],
    ],
    [
      'is stopped while they end',
      [
        'systemctl kill --signal=STOP watcher',
        ...END.slice(0, 2),
        'systemctl kill --signal=KILL watcher',
        ...END.slice(2),
      ],
    ],
  ];

  for (const [title, steps] of ways) {
    itUnderSystemd(
      `${title}: it has the statuses of ${COUNT} processes that others reaped meanwhile`,
      async () => {
        const said = await underSystemd(folder, ['watcher.service'], [...SCRIPT, ...steps]);
        expect(said).toEqual([`NFileDescriptorStore=${COUNT}`]);
        const ready = JSON.parse(readFileSync(join(folder, 'results.ready'), 'utf8')) as unknown;
        expect(ready).toMatchObject({ memory: 'descriptor-store' });
        const results = readFileSync(join(folder, 'results'), 'utf8');
        expect(results).toMatch(/^\{/);
        const lines = results.trimEnd().split('\n');
        const exits = lines.map((line) => JSON.parse(line) as ExitEvent & { key: string });
        expect(exits).toHaveLength(COUNT);
        const pids = readFileSync(join(folder, 'pids'), 'utf8').trim().split(/\s+/);
        const wrong = exits.filter(({ key, how, exitCode, unknownReason }, i) => {
          if (key !== `of ${pids[i]}`) return true;
          if (!KERNEL.pidfdStatus) return unknownReason !== 'gone-while-unobserved';
          return how !== 'exited' || exitCode !== i % 128;
        });
        expect(wrong).toEqual([]);
      },
    );
  }
});
