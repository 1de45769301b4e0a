// Lane: patient

import { once } from 'node:events';

import { encodeMessage, MessageReader } from '../../../src/supervisor/keeper/message.js';
import { childrenOf, rawClient } from '../../support/keeper';
import { kill } from '../../support/kill';
import { sleeper, SupervisorHost } from '../../support/supervisor';
import { until } from '../../support/wait';

const ORPHAN = 'nobody.00000000-1';

/** What the keeper answers to a client that is no supervisor. */
async function ask(host: SupervisorHost, fields: readonly [string, string][]) {
  const socket = await rawClient(host);
  socket.write(encodeMessage([['seq', '1'], ['run', ORPHAN], ...fields]));
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return new MessageReader().read(bytes)[0];
}

it('KB-12 a run that nobody desires is searched for until it is forgotten', async () => {
  await using host = await SupervisorHost.open();
  const keeper = host.ready?.keeperPid ?? NaN;
  await host.apply(sleeper('web'));
  await host.phase('web', 'running');
  const script = "trap '' TERM; while :; do sleep 0.1; done";
  const args = ['sh', '-c', script].map((each): [string, string] => ['arg', each]);
  const logs: [string, string][] = [
    ['fifo', host.path('unused')],
    ['logFile', host.path('log')],
  ];
  await host.supervisor.close(); // it would stop it at once, and its log process would end
  await ask(host, [['op', 'start'], ['file', 'sh'], ...args, ...logs]);
  // As long as its log process is there, the keeper does not forget it.
  const log = await until('its log process', () => childrenOf(keeper, 'exitwatch-log')[0]);
  kill(log, 'SIGSTOP');
  await host.reopen();
  await host.event('orphan');
  await until('the orphan to be gone', () => host.supervisor.metrics().orphans === 0);
  expect((await ask(host, [['op', 'forget']]))?.text('error')).toBe('busy');
  kill(log, 'SIGCONT');
  await until('the log process to end', () => !childrenOf(keeper).includes(log));
  expect((await ask(host, [['op', 'look']]))?.text('state')).toBe('ended');
  host.clock.advance(60_000);
  await until('it to be forgotten', async () => {
    return (await ask(host, [['op', 'look']]))?.text('error') === 'no-run';
  });
});
