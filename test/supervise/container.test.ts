// Lane: patient

import { existsSync, readFileSync, writeFileSync } from 'node:fs';

import { MAIN } from '../support/command';
import { kill } from '../support/kill';
import { itAsRoot } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { SuperviseHost } from '../support/supervise';
import { until } from '../support/wait';

/** `exitwatch supervise` as the first process of a pid namespace, as in a container. */
class Container {
  readonly process: LineProcess;
  readonly told: Record<string, unknown>[] = [];

  constructor({ config, stateDir }: SuperviseHost) {
    const started = new LineProcess('unshare', [
      ...['--pid', '--fork', '--kill-child', '--mount-proc'],
      ...[process.execPath, MAIN, 'supervise', config, '--state-dir', stateDir, '--json'],
    ]);
    this.process = started;
    void (async () => {
      for await (const line of started.lines) {
        this.told.push(JSON.parse(line) as Record<string, unknown>);
      }
    })();
  }

  of(event: string): Record<string, unknown>[] {
    return this.told.filter((each) => each['event'] === event);
  }

  printed(event: string, number = 1) {
    return until(
      `line ${number} of ${event}`,
      () => this.of(event)[number - 1],
      () => `${JSON.stringify(this.told)}\n${this.process.stderr}`,
    );
  }

  /** Its first process, by its pid on the host. */
  async first(): Promise<number> {
    const [first] = await until('its first process', () => childrenOf(this.process.pid));
    return first ?? 0;
  }

  /** The supervisor. */
  async supervisor(): Promise<number> {
    const first = await this.first();
    const found = await until('its supervisor', () =>
      childrenOf(first)?.find((pid) => commandOf(pid).startsWith(`${process.execPath} ${MAIN}`)),
    );
    return found;
  }
}

function childrenOf(pid: number): number[] | null {
  try {
    const found = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim();
    return found === '' ? null : found.split(' ').map(Number);
  } catch {
    return null;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

const app = (script: string) => ({ name: 'app', main: true, command: 'sh', args: ['-c', script] });
const SIDE = { name: 'side', command: 'sleep', args: ['1000'] };

/** Ends with 7 on TERM, and notes what else it gets. */
const OBEDIENT =
  'trap "exit 7" TERM; trap "echo >> hup" HUP; echo > up; while :; do sleep 0.05; done';

describe('as the first process of a container', () => {
  itAsRoot('ends with the status of its main service, when all others have ended', async () => {
    await using host = new SuperviseHost([], true);
    host.write(SIDE, { ...app('while [ ! -e go ]; do sleep 0.05; done; exit 3'), after: ['side'] });
    const container = new Container(host);
    await container.printed('started', 2);
    writeFileSync(host.path('go'), '');
    expect(await container.process.ended).toBe(3);
    expect(container.of('exit').map(({ service }) => service)).toEqual(['app', 'side']);
  });

  itAsRoot('stops all when it is asked to end, and passes other signals on', async () => {
    await using host = new SuperviseHost([], true);
    host.write(SIDE, { ...app(OBEDIENT), after: ['side'] });
    const container = new Container(host);
    await until('its main service to listen', () => existsSync(host.path('up')));
    kill(await container.first(), 'SIGHUP');
    await until('the signal to arrive', () => existsSync(host.path('hup')));
    kill(await container.first(), 'SIGTERM');
    expect(await container.process.ended).toBe(7);
    expect(container.of('exit').map(({ service }) => service)).toEqual(['app', 'side']);
  });

  itAsRoot('keeps its supervisor alive, whose death ends nothing', async () => {
    await using host = new SuperviseHost([], true);
    host.write(SIDE, app(OBEDIENT));
    const container = new Container(host);
    await until('its main service to listen', () => existsSync(host.path('up')));
    await container.printed('started', 2);
    for (let times = 1; times <= 2; times++) {
      kill(await container.supervisor(), 'SIGKILL');
      await container.printed('supervising', times + 1);
      await container.printed('adopted', times * 2);
    }
    expect(container.of('started')).toHaveLength(2);
    expect(container.of('exit')).toEqual([]);
    kill(await container.first(), 'SIGTERM');
    expect(await container.process.ended).toBe(7);
  });

  itAsRoot('does not lose a request to end that comes while its supervisor is dead', async () => {
    await using host = new SuperviseHost([], true);
    host.write(app(OBEDIENT));
    const container = new Container(host);
    await until('its main service to listen', () => existsSync(host.path('up')));
    await container.printed('applied');
    kill(await container.supervisor(), 'SIGKILL');
    kill(await container.first(), 'SIGTERM');
    expect(await container.process.ended).toBe(7);
    expect(container.of('exit')).toMatchObject([{ service: 'app', exitCode: 7 }]);
  });

  itAsRoot('asks all services itself if no supervisor comes', async () => {
    await using host = new SuperviseHost([], true);
    host.write(app(OBEDIENT), SIDE);
    const container = new Container(host);
    await until('its main service to listen', () => existsSync(host.path('up')));
    await container.printed('applied');
    writeFileSync(host.own('services', 'app.json'), 'spoilt'); // the next one cannot start
    kill(await container.supervisor(), 'SIGKILL');
    kill(await container.first(), 'SIGTERM');
    expect(await container.process.ended).toBe(143);
    // Those after 0.5, 1 and 2 s; the next one would wait longer than the request does.
    expect(container.process.stderr.split('app.json is torn').length - 1).toBeLessThanOrEqual(3);
  });

  itAsRoot('runs its main service again when the container is started again', async () => {
    await using host = new SuperviseHost([], true);
    host.write(app('echo >> runs; [ -e go ] || sleep 1000; exit 3'), SIDE);
    const killed = new Container(host);
    await until('its main service to run', () => existsSync(host.path('runs')));
    await killed.printed('applied');
    kill(await killed.first(), 'SIGKILL'); // all in it end with it
    await killed.process.ended;
    writeFileSync(host.path('go'), '');
    for (let times = 2; times <= 3; times++) {
      const again = new Container(host);
      expect(await again.process.ended).toBe(3);
      expect(host.read('runs').length).toBe(times);
    }
  });

  itAsRoot('ends with its main service also if its supervisor was dead then', async () => {
    await using host = new SuperviseHost([], true);
    host.write(app('echo > up; while [ ! -e go ]; do sleep 0.05; done; exit 3'), SIDE);
    const container = new Container(host);
    await until('its main service to run', () => existsSync(host.path('up')));
    await container.printed('applied');
    kill(await container.supervisor(), 'SIGKILL');
    writeFileSync(host.path('go'), '');
    expect(await container.process.ended).toBe(3);
  });

  itAsRoot('has its first process upgraded while all goes on', async () => {
    await using host = new SuperviseHost([], true);
    host.write(app(OBEDIENT), SIDE);
    const container = new Container(host);
    await until('its main service to listen', () => existsSync(host.path('up')));
    await container.printed('started', 2);
    const inside = ['nsenter', '--pid', '--mount', '--target', String(await container.first())];
    const { code, lines } = await host.serviceAs(inside, 'upgrade-keeper');
    expect(code).toBe(0);
    expect(lines).toEqual([expect.stringMatching(/^the keeper \(pid 1\) is \S+ now; it was \S+$/)]);
    // It still keeps its supervisor alive, and still has the signals of the container.
    kill(await container.supervisor(), 'SIGKILL');
    await container.printed('supervising', 2);
    kill(await container.first(), 'SIGHUP');
    await until('the signal to arrive', () => existsSync(host.path('hup')));
    kill(await container.first(), 'SIGTERM');
    expect(await container.process.ended).toBe(7);
    expect(container.of('started')).toHaveLength(2);
  });

  itAsRoot('reaps what others have left behind', async () => {
    await using host = new SuperviseHost([], true);
    // A grandchild whose parent ends becomes a child of the first process.
    const script =
      'for i in 1 2 3 4 5; do (sh -c "sleep 0.05 &"); done; sleep 0.3; echo > left; sleep 1000';
    host.write({ ...app(script), cgroup: null });
    const container = new Container(host);
    await until('they to end', () => existsSync(host.path('left')));
    const first = await container.first();
    const zombies = () =>
      (childrenOf(first) ?? []).filter((pid) => {
        try {
          return /^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
        } catch {
          return false;
        }
      });
    await until('no zombie to be left', () => zombies().length === 0);
    kill(first, 'SIGTERM');
    expect(await container.process.ended).toBe(143);
  });

  itAsRoot('ends at once with a configuration that cannot be used', async () => {
    await using host = new SuperviseHost([], true);
    writeFileSync(host.config, '{');
    const container = new Container(host);
    expect(await container.process.ended).toBe(2);
    expect(container.process.stderr).toContain('it is no JSON');
  });
});
