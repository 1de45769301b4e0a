// Lane: patient

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { MemoryFolder } from '../support/bpffs';
import { call } from '../support/command';
import { HAS_CONNECTOR } from '../support/kernel';
import { commandWith } from '../support/pages';
import { itUnderSystemd, underSystemd } from '../support/systemd';

const PAGE = 'docs/journal.md';

/** A command of a page, for root. */
const command = (page: string, part: string) =>
  commandWith(page, part)
    .trim()
    .replace(/^sudo /, '');

itUnderSystemd(
  'the commands of the README and of the page install a service, and ask its journal',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-journal-'));
    const install = command('README.md', 'record --install');
    try {
      const said = await underSystemd(
        folder,
        [],
        [
          install,
          // Outside the host's pid namespace exitwatch polls, and reports only processes that it has seen.
          'cp /bin/sleep /tmp/nginx; /tmp/nginx 1000 & nginx=$!',
          'until [ "$(cat /proc/$nginx/comm)" = nginx ]; do sleep 0.1; done; sleep 3',
          'kill $nginx; wait $nginx 2>/dev/null',
          `until ${command('README.md', 'why nginx')} 2>/dev/null; do sleep 0.2; done`,
          'systemctl show --property=ActiveState,CapabilityBoundingSet,NoNewPrivileges exitwatch-record',
          'stat -c %a:%U:%G /var/lib/exitwatch /var/lib/exitwatch/journal',
          `${command(PAGE, 'record --install')}; systemctl is-active exitwatch-record`,
          'stat -c %a:%U:%G /var/lib/exitwatch /var/lib/exitwatch/journal',
          `${command(PAGE, '--since -1h')} | grep -o -m 1 nginx`,
          'exitwatch record --uninstall',
          'ls /etc/systemd/system; ls /var/lib/exitwatch/journal/*.jsonl | wc -l',
        ],
      );
      const at = said.findIndex((line) => line.startsWith('CapabilityBoundingSet='));
      expect(said).toEqual([
        'installed exitwatch-record.service',
        expect.stringMatching(
          /^\d+ \(nginx\) ended; how is not known \(polled\); it lived for [\d.]+s$/,
        ),
        ...Array.from({ length: at - 2 }, () => expect.any(String) as string),
        'CapabilityBoundingSet=cap_dac_read_search cap_net_admin cap_perfmon cap_bpf',
        'NoNewPrivileges=yes',
        'ActiveState=active',
        '700:root:root',
        '700:root:root',
        'installed exitwatch-record.service',
        'active',
        '750:root:adm',
        '750:root:adm',
        'nginx',
        'removed exitwatch-record.service; the journal is still in /var/lib/exitwatch',
        '1',
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

const unit = (command: string) =>
  `[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=${command}\n`;

/** How services end, and what `why` says of each: its first line, and who did it. */
const WAYS: [name: string, act: string, how: RegExp, by: RegExp][] = [
  [
    'scripted',
    'sh -c "kill $(cat /run/test/scripted.pid)"',
    /killed by SIGTERM from sh /,
    /^by +SIGTERM from \d+ sh, /,
  ],
  [
    'restarted',
    'systemctl restart restarted',
    /killed by SIGTERM/,
    /^by +SIGTERM from \d+ systemd, /,
  ],
  [
    'signalled',
    'systemctl kill --signal=HUP signalled',
    /killed by SIGHUP/,
    /^by +SIGHUP from \d+ systemd, /,
  ],
  [
    'faulty',
    'sh -c "kill -SEGV $(cat /run/test/faulty.pid)"',
    /killed by SIGSEGV/,
    /^by +SIGSEGV from \d+ sh, /,
  ],
  ['killed', 'systemctl start killer', /killed by SIGKILL/, /^by +SIGKILL from \d+ sh, /],
];

itUnderSystemd(
  'a service ends: why tells who did it, with no more capabilities than the unit has',
  async () => {
    if (!HAS_CONNECTOR) throw new Error('this needs the host’s network namespace');
    using memory = new MemoryFolder();
    chmodSync(memory.path, 0o755);
    const places = ['--state-dir', '/run/test/state', '--pin-dir', '/run/test/bpf/exitwatch'];
    const { lines } = await call('record', '--print-unit', ...places);
    const text = lines.join('\n').replace(/ \S+main\.js /, ' /run/repository/dist/cli/main.js ');
    writeFileSync(join(memory.path, 'record.service'), text);
    for (const [name] of WAYS) {
      const start = `/bin/sh -c "echo $$$$ >/run/test/${name}.pid; exec /run/test/${name} 1000"`;
      writeFileSync(join(memory.path, `${name}.service`), unit(start));
    }
    writeFileSync(
      join(memory.path, 'killer.service'),
      unit('/bin/sh -c "kill -KILL $(cat /run/test/killed.pid); exit 0"').replace(
        '[Service]\n',
        '[Service]\nType=oneshot\n',
      ),
    );
    const units = ['record', 'killer', ...WAYS.map(([name]) => name)].map(
      (name) => `${name}.service`,
    );
    const said = await underSystemd(
      memory.path,
      units,
      [
        'systemctl start record',
        ...WAYS.flatMap(([name, act]) => [
          `cp /bin/sleep /run/test/${name}; systemctl start ${name}`,
          `until [ "$(cat /proc/$(cat /run/test/${name}.pid)/comm)" = ${name} ]; do sleep 0.05; done`,
          act,
          `until exitwatch why ${name} --state-dir /run/test/state >/run/test/why 2>/dev/null; do sleep 0.1; done`,
          'grep -e "^[0-9]" -e "^by" /run/test/why',
        ]),
        'systemctl show --property=CapabilityBoundingSet record',
        'systemctl stop record',
      ],
      'user',
    );
    for (const [name, , how, by] of WAYS) {
      const at = said.findIndex((line) => line.includes(`(${name}) `));
      expect(said[at]).toMatch(how);
      expect(said[at + 1]).toMatch(by);
    }
    expect(said.at(-1)).toBe(
      'CapabilityBoundingSet=cap_dac_read_search cap_net_admin cap_perfmon cap_bpf',
    );
  },
);
