// Lane: patient

// Users are looked up by commands, because a name service may be behind them: it may not answer, or not fully.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { callWith } from '../support/command';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'exitwatch-users-'))));
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Checks three services with an id(1) that notes what it is asked, and knows every user. */
async function check(id: string, more: object) {
  const asked = join(folder, 'asked');
  writeFileSync(asked, '');
  const script = `#!/bin/sh\necho "$@" >> ${asked}\n${id}\necho 7`;
  writeFileSync(join(folder, 'id'), script, { mode: 0o755 });
  const config = join(folder, 'services.json');
  const services = ['a', 'b', 'c'].map((name) => ({ name, command: 'true', ...more }));
  writeFileSync(config, JSON.stringify({ services }));
  const path = `PATH=${folder}:${process.env['PATH']}`;
  const { code, stderr } = await callWith(['env', path], 'supervise', config, '--check');
  return { code, stderr, asked: readFileSync(asked, 'utf8').trim().split('\n') };
}

it('each question is asked once for a configuration', async () => {
  expect(await check('', { user: 'web' })).toEqual({
    ...{ code: 0, stderr: '', asked: ['-u web', '-g web', '-G web'] },
  });
});

it('a name service that does not answer is an error, and not asked again', async () => {
  const { code, stderr, asked } = await check('exec sleep 1000', { user: 'web' });
  expect(stderr).toContain('id(1) did not answer within 5000 ms');
  expect({ code, asked }).toEqual({ code: 2, asked: ['-u web'] });
});

it('a user whose groups cannot be looked up is an error, and does not lack them', async () => {
  const { code, stderr } = await check('test "$1" != -G || exit 1', { user: 'web', group: 7 });
  expect(stderr).toContain('cannot look up the groups of user "web"');
  expect(code).toBe(2);
});

it('a number that is no user’s has no groups', async () => {
  expect(await check('exit 1', { user: 12_345, group: 7 })).toMatchObject({ code: 0 });
  const { code, stderr } = await check('exit 1', { user: 12_345 });
  expect(stderr).toContain('user 12345 has no group: give one as well');
  expect(code).toBe(2);
});
