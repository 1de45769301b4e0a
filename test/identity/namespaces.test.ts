// Lane: patient

import { ExitMonitor } from '../../src';

import { itAsRoot, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program, REPOSITORY, run } from '../support/programs';

/** Prints the result of `start()`, or `late` after 2 seconds. */
const START = `
  const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
  const monitor = new ExitMonitor({ scope: 'all', source: 'connector' });
  const late = setTimeout(() => { console.log('late'); process.exit(); }, 2000);
  monitor.start()
    .then(() => console.log('started'), (error) => console.log(error.code))
    .finally(() => { clearTimeout(late); return monitor.close(); });
`;

async function startIn(command: readonly string[]): Promise<string> {
  const args = [...command.slice(1), process.execPath, '-e', START];
  return (await run(command[0] ?? '', args)).stdout.trim();
}

const FOREIGN: [string[], string][] = [
  [['unshare', '-n'], 'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE'],
  [['unshare', '-pf', '--mount-proc'], 'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE'],
  [['unshare', '-pf'], 'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE'],
  [['unshare', '-Ur'], 'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE'],
];

describe.each(FOREIGN)('under %j', (command, code) => {
  itAsRootOfHost(`start() rejects with ${code} within 2 seconds`, async () => {
    expect(await startIn(command)).toBe(code);
  });

  itAsRootOfHost(
    `start() rejects even while another listener on the host lets events leak in`,
    async () => {
      await using listener = new ExitMonitor({ scope: 'all' });
      await listener.start();
      const storm = new LineProcess(program('storm'), ['100000']);
      try {
        expect(await startIn(command)).toBe(code);
      } finally {
        storm.child.kill();
        await storm.ended;
      }
    },
  );
});

itAsRootOfHost('an ordinary user without capabilities can listen (Linux 6.6)', async () => {
  const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all'];
  expect(await startIn([...nobody, '--bounding-set=-all', '--no-new-privs'])).toBe('started');
});

itAsRoot('times are wall-clock times also in a time namespace', async () => {
  const script = `
    const { ExitMonitor } = require(${JSON.stringify(REPOSITORY)});
    const monitor = new ExitMonitor({ scope: 'all' });
    monitor.start().then(() => {
      const child = require('node:child_process').spawn('sleep', ['0.1']);
      const begin = Date.now();
      monitor.watch(child.pid).exited.then((event) => {
        const lived = event.exitedAt - event.startedAt;
        console.log(event.exitedAt >= begin && event.exitedAt <= Date.now(), lived >= 50 && lived < 5000);
        return monitor.close();
      });
    });
  `;
  const { stdout } = await run('unshare', [
    ...['-T', '--monotonic', '1000', '--boottime', '2000', '-f'],
    ...[process.execPath, '-e', script],
  ]);
  expect(stdout.trim()).toBe('true true');
});
