// Lane: patient

import { readFileSync, writeFileSync } from 'node:fs';

import { KeeperHost } from '../support/keeper';

/** What a command gets of a file of variables. */
async function environmentOf(host: KeeperHost, text: string): Promise<Record<string, string>> {
  const [envFile, stdout] = [host.path('envFile'), host.path('out')];
  writeFileSync(envFile, text);
  const run = { id: 'env', command: '/usr/bin/env', args: ['-0'], env: {} };
  await host.keeper.start({ ...run, envFile, logs: { stdout } });
  expect(await host.end('env')).toMatchObject({ exitCode: 0 });
  const variables = readFileSync(stdout, 'utf8').split('\0').slice(0, -1);
  return Object.fromEntries(variables.map((each) => each.split(/=(.*)/s, 2) as [string, string]));
}

describe('a file of variables is read as systemd reads an EnvironmentFile=', () => {
  it.each<[string, string, Record<string, string>]>([
    ['comments and empty lines', '# A=1\n\n  ; B=2\nC=3\n', { C: '3' }],
    ['white space around', '  A = one two  \n\tB=\t3\n', { A: 'one two', B: '3' }],
    [
      'quotes',
      `A="one 'two' "\nB='"one" $A'\nC=a"b"\n`,
      { A: "one 'two' ", B: '"one" $A', C: 'a"b"' },
    ],
    ['parts of both kinds', `A="one"' two'\nB="one"two\n`, { A: 'one two', B: 'onetwo' }],
    ['escapes in quotes', String.raw`A="\"\\\$\x"` + "\nB='\\\\'\n", { A: '"\\$\\x', B: '\\\\' }],
    ['escapes without quotes', 'A=one\\ \nB=\\"x\\"\n', { A: 'one ', B: '"x"' }],
    ['lines that go on', 'A=one\\\ntwo\nB="x\\\ny"\n', { A: 'onetwo', B: 'xy' }],
    ['lines within quotes', 'A="x\ny"\nB=\'z\n\'\n', { A: 'x\ny', B: 'z\n' }],
    ['lines that end with CR LF', '#\r\nA="1"\r\nB=2\r\n', { A: '1', B: '2' }],
    ['no end of the last line', 'A=1\nB=2', { A: '1', B: '2' }],
    ['what is none', 'nothing\n=x\n1A=x\nexport B=x\nC D=x\nE=\n', { E: '' }],
    ['names of other programs than shells', 'a.b-c=1\n', { 'a.b-c': '1' }],
    ['one of the same name, later', 'A=1\nB=2\nA=3\n', { A: '3', B: '2' }],
    ['a comment that does not go on', '# A=1\\\nB=2\n', { B: '2' }],
  ])('with %s', async (_, text, expected) => {
    await using host = await KeeperHost.open();
    expect(await environmentOf(host, text)).toEqual(expected);
  });

  it.each([
    ['a NUL', 'A=1\0\n', 22],
    ['more than a mebibyte', `A=${'x'.repeat(1 << 20)}\n`, 27],
  ])('and refused with %s', async (_, text, errno) => {
    await using host = await KeeperHost.open();
    const envFile = host.path('envFile');
    writeFileSync(envFile, text);
    await expect(host.keeper.start({ id: 'a', command: 'true', envFile })).rejects.toMatchObject({
      code: 'ERR_EXITWATCH_START_FAILED',
      syscall: 'environment',
      errno,
    });
  });
});
