// Lane: patient

import { chmodSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { request } from 'node:http';
import { once } from 'node:events';

import { itAsRoot } from '../support/privilege';
import { randomFrom } from '../support/random';
import { SuperviseHost } from '../support/supervise';
import { arrives, until } from '../support/wait';

const SLEEPER = { name: 'web', command: 'sleep', args: ['1000'] };

/** What a supervisor answers to a question that the command would not ask. */
async function asked(
  host: SuperviseHost,
  path: string,
  body: string,
  method = 'POST',
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath: host.own('control.sock'), path, method, agent: false });
    asking.on('error', reject);
    asking.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text });
      });
    });
    asking.end(body);
  });
}

/** Sends bytes, and resolves when the supervisor has closed the connection. */
async function sent(host: SuperviseHost, bytes: string | Buffer): Promise<void> {
  const socket = connect(host.own('control.sock'));
  socket.on('error', () => undefined);
  socket.resume();
  socket.write(bytes);
  await arrives('the supervisor to hang up', once(socket, 'close'));
}

describe('the socket of a supervisor', () => {
  it('refuses what is no question, and changes nothing', async () => {
    await using host = await SuperviseHost.of(SLEEPER);
    const { pid } = await host.phase('web', 'running');
    const wrong: [path: string, body: string, code: string, message: string][] = [
      ['/stop', '', 'ERR_EXITWATCH_INVALID_OPTION', 'the question is no JSON'],
      ['/stop', '[]', 'ERR_EXITWATCH_INVALID_OPTION', 'the question must be an object'],
      ['/stop', '{}', 'ERR_EXITWATCH_INVALID_OPTION', 'names must be an array of names'],
      ['/stop', '{"names":[]}', 'ERR_EXITWATCH_INVALID_OPTION', 'names must be an array'],
      ['/stop', '{"names":[1]}', 'ERR_EXITWATCH_INVALID_OPTION', 'names must be an array'],
      [
        '/stop',
        '{"names":["web"],"graceMs":-1}',
        'ERR_EXITWATCH_INVALID_OPTION',
        'graceMs must be',
      ],
      ['/stop', '{"names":["web"],"until":"x"}', 'ERR_EXITWATCH_INVALID_OPTION', 'until must be'],
      ['/stop', '{"names":["web"],"x":1}', 'ERR_EXITWATCH_INVALID_OPTION', 'unknown option "x"'],
      ['/stop', '{"names":["__proto__"]}', 'ERR_EXITWATCH_NO_SERVICE', 'there is no service'],
      ['/stop', `{"names":["${'x'.repeat(70_000)}"]}`, 'ERR_EXITWATCH_INVALID_OPTION', 'too long'],
      ['/constructor', '{}', 'ERR_EXITWATCH_INVALID_OPTION', 'there is no question "constructor"'],
      ['/../stop', '{}', 'ERR_EXITWATCH_INVALID_OPTION', 'a question is POST /NAME'],
      ['/apply', '{"dryRun":1}', 'ERR_EXITWATCH_INVALID_OPTION', 'dryRun is true or false'],
    ];
    for (const [path, body, code, message] of wrong) {
      const { status, text } = await asked(host, path, body);
      const { error } = JSON.parse(text) as { error: { code: string; message: string } };
      expect({ path, body, status, code: error.code }).toEqual({ path, body, status: 400, code });
      expect(error.message).toContain(message);
    }
    expect((await asked(host, '/list', '', 'GET')).status).toBe(400);
    expect(await host.listed('web')).toMatchObject({ pid, phase: 'running' });
  });

  it('hangs up on garbage', async () => {
    await using host = await SuperviseHost.of(SLEEPER);
    const seed = Number(process.env['EXITWATCH_SEED'] ?? Date.now());
    const random = randomFrom(seed);
    for (let round = 0; round < 200; round++) {
      const bytes = Buffer.from(Array.from({ length: 1 + random(300) }, () => random(256)));
      const isHttp = random(2) === 0;
      await sent(
        host,
        isHttp
          ? Buffer.concat([Buffer.from('POST /stop HTTP/1.1\r\n'), bytes, Buffer.from('\r\n\r\n')])
          : Buffer.concat([bytes, Buffer.from('\n\n')]),
      );
    }
    await sent(host, `POST /stop HTTP/1.1\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`);
    expect(await host.listed('web')).toMatchObject({ phase: 'running', restarts: 0 });
  });

  it('does not wait for half a question, and has room for others meanwhile', async () => {
    await using host = await SuperviseHost.of(SLEEPER);
    const halves: Socket[] = [];
    let closed = 0;
    for (let at = 0; at < 40; at++) {
      const socket = connect(host.own('control.sock'));
      socket.on('error', () => undefined);
      socket.on('close', () => closed++);
      socket.resume();
      socket.write(
        at % 2 === 0 ? 'POST /st' : 'POST /stop HTTP/1.1\r\nContent-Length: 50\r\n\r\n{"names"',
      );
      halves.push(socket);
    }
    expect(await host.listed('web')).toMatchObject({ phase: 'running' });
    await until(
      'it to hang up on them',
      () => closed === halves.length,
      () => `${closed} closed`,
    );
    expect(await host.listed('web')).toMatchObject({ phase: 'running', restarts: 0 });
  });

  it('survives a flood', async () => {
    await using host = await SuperviseHost.of(SLEEPER);
    const { pid } = await host.phase('web', 'running');
    const answers = await Promise.all(
      Array.from({ length: 300 }, () =>
        asked(host, '/list', '{}').then(
          ({ status }) => status,
          (error: unknown) => (error as NodeJS.ErrnoException).code,
        ),
      ),
    );
    const refused = answers.filter((each) => each !== 200);
    expect(refused.every((each) => each === 'ECONNRESET' || each === 'EPIPE')).toBe(true);
    expect(answers.length - refused.length).toBeGreaterThan(10);
    expect(await host.listed('web')).toMatchObject({ pid, restarts: 0 });
  });

  itAsRoot('is closed to other users, also if its mode were not', async () => {
    await using host = await SuperviseHost.of(SLEEPER);
    const as = ['setpriv', '--reuid=61234', '--regid=61234', '--clear-groups'];
    for (const path of [host.folder, host.stateDir, host.own()]) chmodSync(path, 0o755);
    const denied = await host.serviceAs(as, 'stop', 'web');
    expect(denied.code).toBe(125);
    expect(denied.stderr).toContain('permission denied');
    chmodSync(host.own('control.sock'), 0o666);
    const dropped = await host.serviceAs(as, 'stop', 'web');
    expect(dropped.code).toBe(125);
    expect(await host.listed('web')).toMatchObject({ phase: 'running', restarts: 0 });
  });
});
