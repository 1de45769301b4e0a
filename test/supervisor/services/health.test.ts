// Lane: patient

import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';

import { identify, startOf } from '../../../src/identity/process-identity';
import { itIf } from '../../support/privilege';
import { sleeper, SupervisorHost } from '../../support/supervisor';
import { blockUntil, until } from '../../support/wait';

/** Only interfaces that are up are listed. */
const itWithLoopback = itIf(
  Object.values(networkInterfaces()).some((each) => each?.some(({ internal }) => internal)),
  'needs a loopback interface',
);

/**
 * Sends each line of a fifo to its NOTIFY_SOCKET. It has it open for writing, too: at the end of one line, it would close it,
 * and lose another one that has just been written.
 */
const SENDER = String.raw`
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
to = os.environ['NOTIFY_SOCKET']
to = '\0' + to[1:] if to[0] == '@' else to
for line in os.fdopen(os.open(sys.argv[1], os.O_RDWR)):
    s.sendto(line.strip().encode(), to)
    open(sys.argv[1] + '.sent', 'a').write(line)
`;

function notifier(host: SupervisorHost, name = 'web') {
  const fifo = host.path(`${name}.fifo`);
  if (!existsSync(fifo)) execFileSync('mkfifo', [fifo]);
  return {
    spec: { name, command: 'python3', args: ['-c', SENDER, fifo] },
    send: (line: string) => {
      writeFileSync(fifo, `${line}\n`);
    },
  };
}

describe('a service is ready', () => {
  it('as soon as it runs, if nothing else is said', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web'));
    await host.phase('web', 'running');
    expect(host.status('web').isReady).toBe(true);
    expect(await host.event('ready')).toMatchObject({ service: 'web' });
  });

  it('when it says so', async () => {
    await using host = await SupervisorHost.open();
    const { spec, send } = notifier(host);
    await host.apply({ ...spec, ready: { notify: true } });
    await host.phase('web', 'running');
    send('STATUS=not yet');
    expect(host.status('web').isReady).toBe(false);
    send('READY=1');
    await host.event('ready');
    expect(host.status('web').isReady).toBe(true);
    await host.reopen();
    expect(host.status('web').isReady).toBe(true);
  });

  itWithLoopback('when it answers', async () => {
    await using host = await SupervisorHost.open();
    let status = 503;
    const server = createServer((_, response) => response.writeHead(status).end());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await host.apply(
      sleeper('http', { ready: { http: `http://127.0.0.1:${port}/health`, everyMs: 10 } }),
      sleeper('tcp', { ready: { tcp: { port } } }),
    );
    await until('tcp to be ready', () => host.status('tcp').isReady);
    expect(host.status('http').isReady).toBe(false);
    status = 204;
    await until('http to be ready', () => {
      host.clock.advance(10);
      return host.status('http').isReady;
    });
    server.close();
  });

  it('when a command succeeds', async () => {
    await using host = await SupervisorHost.open();
    const file = host.path('ready');
    const exec = { command: 'test', args: ['-e', file] };
    await host.apply(sleeper('web', { ready: { exec, everyMs: 10 } }));
    await host.phase('web', 'running');
    expect(host.status('web').isReady).toBe(false);
    writeFileSync(file, '');
    await until('it to be ready', () => {
      host.clock.advance(10);
      return host.status('web').isReady;
    });
  });

  it('when it has lived so long, also if another supervisor has started it', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { ready: { aliveMs: 50 } }));
    const { identity } = await host.phase('web', 'running');
    await until('it to be old enough', () => {
      const started = startOf(identity ?? identify(process.pid) ?? ({} as never));
      return Date.now() - (started?.getTime() ?? 0) > 100;
    });
    await host.reopen();
    host.clock.advance(0);
    expect(host.status('web').isReady).toBe(true);
  });

  it('when a check has succeeded, also if another supervisor has asked', async () => {
    await using host = await SupervisorHost.open();
    const file = host.path('ready');
    writeFileSync(file, '');
    const ready = { exec: { command: 'test', args: ['-e', file] }, withinMs: 5000 };
    await host.apply(sleeper('web', { ready }));
    const { pid } = await host.phase('web', 'running');
    await host.event('ready');
    rmSync(file);
    await host.reopen();
    expect(host.status('web')).toMatchObject({ pid, isReady: true });
    host.clock.advance(60_000);
    await host.supervisor.service('web').restart();
    await until('another check', () => host.status('web').notReady !== null); // it is asked anew
    expect(host.of('exit').map(({ decision }) => decision.reason)).toEqual(['restart']);
  });

  itWithLoopback('when it answers, even if its answer has no end', async () => {
    await using host = await SupervisorHost.open();
    let open = 0;
    const server = createServer((_, response) => {
      open++;
      response.on('close', () => open--);
      response.writeHead(200).write('and on');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await host.apply(sleeper('web', { ready: { http: `http://127.0.0.1:${port}/` } }));
    await host.event('ready');
    await until('the request to be closed', () => open === 0);
    server.close();
  });

  it('when it has lived so long', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { ready: { aliveMs: 3000 } }));
    await host.phase('web', 'running');
    host.clock.advance(2999);
    expect(host.status('web').isReady).toBe(false);
    host.clock.advance(1);
    expect(host.status('web').isReady).toBe(true);
  });
});

describe('a service is restarted', () => {
  it('if it is not ready in time, which is on record as ours', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { ready: { notify: true, withinMs: 3000 } }));
    await host.phase('web', 'running');
    host.clock.advance(3000);
    const { decision } = await host.event('exit');
    expect(decision).toMatchObject({
      restart: true,
      reason: 'health',
      evidence: { intent: { purpose: 'health', why: 'it was not ready after 3000 ms' } },
    });
    await host.event('started', 2);
  });

  it('if it is not ready in time, but not while it is paused', async () => {
    await using host = await SupervisorHost.open();
    await host.apply(sleeper('web', { ready: { notify: true, withinMs: 3000 } }));
    const { pid } = await host.phase('web', 'running');
    await host.supervisor.service('web').pause();
    host.clock.advance(100_000);
    expect(host.status('web')).toMatchObject({ phase: 'paused', pid });
    await host.supervisor.service('web').resume();
    host.clock.advance(3000);
    expect((await host.event('exit')).decision.reason).toBe('health');
  });

  it('if it does not serve its watchdog', async () => {
    await using host = await SupervisorHost.open();
    const { spec, send } = notifier(host);
    await host.apply({ ...spec, ready: { notify: true }, watchdog: { withinMs: 5000 } });
    await host.phase('web', 'running');
    send('WATCHDOG=1');
    send('READY=1');
    await host.event('ready');
    host.clock.advance(4000);
    expect(host.status('web').phase).toBe('running');
    host.clock.advance(6000);
    const { decision } = await host.event('exit');
    expect(decision).toMatchObject({ reason: 'health' });
    await host.event('started', 2);
  });

  it('but not if it needs longer to be ready than it may be silent later', async () => {
    await using host = await SupervisorHost.open();
    const { spec, send } = notifier(host);
    await host.apply({ ...spec, ready: { notify: true }, watchdog: { withinMs: 5000 } });
    const { pid } = await host.phase('web', 'running');
    send('WATCHDOG=1');
    await until('it to be sent', () => existsSync(host.path('web.fifo.sent')));
    host.clock.advance(20_000);
    await host.supervisor.signal('web', 'SIGCONT'); // answered after what was asked before
    send('READY=1');
    await host.event('ready');
    expect(host.status('web')).toMatchObject({ phase: 'running', pid });
    host.clock.advance(5000);
    expect((await host.event('exit')).decision.reason).toBe('health');
  });

  it('but not if we were too busy to hear what it has sent in time', async () => {
    await using host = await SupervisorHost.open();
    const { spec, send } = notifier(host);
    const ready = { notify: true, withinMs: 5000 } as const;
    await host.apply({ ...spec, ready, watchdog: { withinMs: 10_000 } });
    await host.phase('web', 'running');
    const sendUnheard = (line: string) => {
      send(line);
      const sent = host.path('web.fifo.sent');
      blockUntil(
        'it to be sent',
        () => existsSync(sent) && readFileSync(sent, 'utf8').includes(line),
      );
    };
    sendUnheard('READY=1');
    host.clock.advance(6000);
    await host.supervisor.signal('web', 'SIGCONT'); // answered after what was asked before
    expect(host.status('web')).toMatchObject({ phase: 'running', isReady: true });
    host.clock.advance(6000);
    sendUnheard('WATCHDOG=1');
    host.clock.advance(6000);
    await host.supervisor.signal('web', 'SIGCONT');
    expect(host.status('web').phase).toBe('running');
    host.clock.advance(11_000);
    const { decision } = await host.event('exit');
    expect(decision).toMatchObject({ reason: 'health' });
  });

  it('but not if we were stopped when it became ready', async () => {
    await using host = await SupervisorHost.open();
    const file = host.path('ready');
    const ready = { exec: { command: 'test', args: ['-e', file] }, withinMs: 5000, everyMs: 4000 };
    await host.apply(sleeper('web', { ready }));
    await host.phase('web', 'running');
    await until('the first check', () => host.status('web').notReady !== null);
    writeFileSync(file, '');
    host.clock.skip(10_000);
    host.clock.advance(0);
    await host.event('ready');
    host.clock.advance(10_000);
    expect(host.status('web')).toMatchObject({ phase: 'running', isReady: true });
  });

  it('if it triggers its watchdog, but not while it is paused', async () => {
    await using host = await SupervisorHost.open();
    const { spec, send } = notifier(host);
    await host.apply({ ...spec, watchdog: { withinMs: 5000 } });
    await host.phase('web', 'running');
    await host.supervisor.service('web').pause();
    host.clock.advance(100_000);
    expect(host.status('web').phase).toBe('paused');
    await host.supervisor.service('web').resume();
    send('WATCHDOG=trigger');
    await host.event('started', 2);
  });
});
