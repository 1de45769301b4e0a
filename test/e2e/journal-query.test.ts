// Lane: patient

import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { blockWith } from '../support/pages';
import { itUnderSystemd, underSystemd } from '../support/systemd';

const UNITS = '/lib/systemd/system';
const JOURNALD = ['systemd-journald.service', 'systemd-journald.socket'];

const unit = blockWith('docs/who-did-it.md', '# /etc/systemd/system/exitwatch.service');
const query = blockWith('docs/who-did-it.md', 'journalctl').trim();

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-journal-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Prints all that the journal has of the unit. The test waits for lines in it. */
const journal = 'journalctl -u exitwatch -o cat';

itUnderSystemd(
  'the query of docs/who-did-it.md finds the end of a process in the journal of its unit, among other lines',
  async () => {
    writeFileSync(join(folder, 'exitwatch.service'), unit);
    // Other distributions may keep these files elsewhere. Then journald does not start, and the
    // test fails with a message.
    for (const name of JOURNALD.filter((each) => existsSync(join(UNITS, each)))) {
      copyFileSync(join(UNITS, name), join(folder, name));
    }
    const said = await underSystemd(
      folder,
      ['exitwatch.service', ...JOURNALD],
      [
        // journald neither reads the host's kernel log nor changes settings of the host.
        'mkdir -p /run/systemd/journald.conf.d',
        'printf "[Journal]\\nReadKMsg=no\\nAudit=\\n" >/run/systemd/journald.conf.d/test.conf',
        'systemctl start systemd-journald',
        'systemctl log-target journal; systemctl log-level info',
        // Outside the host's pid namespace exitwatch polls, and reports only processes that it has
        // seen.
        'cp /bin/sleep /tmp/server; cp /bin/sleep /tmp/other',
        '/tmp/server 1000 & server=$!; /tmp/other 1000 & other=$!; echo $server',
        'systemctl start exitwatch',
        `until ${journal} | grep -q '"ready"'; do sleep 0.05; done`,
        'kill -KILL $server $other; wait',
        `until ${journal} | grep -q '"other"'; do sleep 0.05; done`,
        `until ${journal} | grep -q '"server"'; do sleep 0.05; done`,
        `${journal} | grep -v '^{'`,
        'echo the query:',
        query,
      ],
    );
    const at = said.indexOf('the query:');
    // systemd's own lines about the unit, and what exitwatch prints to stderr. They are not JSON.
    expect(said.slice(1, at)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Started .*Who ended which process/),
        expect.stringMatching(/^watching every process on this host/),
      ]),
    );
    expect(JSON.parse(said.slice(at + 1).join('\n'))).toMatchObject({
      ...{ event: 'exit', name: 'server', pid: Number(said[0]), how: 'unknown' },
    });
  },
  'jq',
);
