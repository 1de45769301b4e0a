// Lane: patient

// A server takes more than two minutes from the signal that asked it to end to its end: no window may hide who asked.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { readJournal } from '../../src/journal';

import { call, exitwatch, watching } from '../support/command';
import { itAsRecorder } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { TestRecord } from '../support/recording';
import { SuperviseHost } from '../support/supervise';
import { until } from '../support/wait';

/** Longer than exitwatch keeps other signals. */
const DRAIN_SECONDS = 138;

/** Ends some seconds after SIGTERM or SIGQUIT: by exit(0), or by sending itself SIGTERM again. SIGHUP only reloads. */
const SERVER = `
import os, signal, sys, time
asked = []
for number in (signal.SIGTERM, signal.SIGQUIT): signal.signal(number, lambda *_: asked.append(1))
signal.signal(signal.SIGHUP, lambda *_: None)
print('up', flush=True)
while not asked and sys.argv[2] != 'reload': time.sleep(0.05)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end: time.sleep(0.1)
if sys.argv[2] == 'raise':
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
`;

/** The arguments of a server. */
const serverArgs = (seconds: number, how: 'exit' | 'raise' | 'reload') => [
  ...['python3', '-c', SERVER],
  ...[String(seconds), how],
];

/** Others may have had a pid before, or get it later. */
const OURS = ['--parent', String(process.pid)];

async function serve(seconds: number, how: 'exit' | 'raise' | 'reload'): Promise<LineProcess> {
  const [command = '', ...args] = serverArgs(seconds, how);
  const server = new LineProcess(command, args);
  expect(await server.line()).toBe('up');
  return server;
}

/** Has a shell of its own send the signal; resolves with its pid. */
async function send(signal: string, pid: number): Promise<number> {
  const sender = spawn('sh', ['-c', `kill -${signal} ${pid}; exit 3`]);
  await once(sender, 'exit');
  return sender.pid ?? 0;
}

const AFTER = (signal: string, pid: number) =>
  expect.stringMatching(new RegExp(` 2\\.3m after ${signal} from ${pid} sh$`)) as string;

itAsRecorder(
  'who asked a server to end is known more than two minutes later, wherever somebody asks',
  async () => {
    await using record = new TestRecord();
    await using downtime = new TestRecord();
    await record.start();
    await downtime.start();
    const [command = '', ...args] = serverArgs(DRAIN_SECONDS, 'exit');
    await using host = await SuperviseHost.of({ name: 'web', command, args });
    const watch = exitwatch('watch', ...OURS);
    await watching(watch);
    const { pid: service } = await host.phase('web', 'running');
    const exits = await serve(DRAIN_SECONDS, 'exit');
    const quits = await serve(DRAIN_SECONDS, 'exit');
    const raises = await serve(DRAIN_SECONDS, 'raise');
    const reloads = await serve(DRAIN_SECONDS, 'reload');
    const busy = await serve(4, 'exit');
    const early = exitwatch('wait', String(exits.pid));
    await watching(early);

    // Nobody writes this journal while they are asked, nor when the first one ends.
    await downtime.kill('SIGKILL');
    const askedService = await send('TERM', service ?? 0);
    const asked = await send('TERM', exits.pid);
    const askedToQuit = await send('QUIT', quits.pid);
    const askedToRaise = await send('TERM', raises.pid);
    await send('HUP', reloads.pid);
    const askedBusy = await send('TERM', busy.pid);
    for (let i = 0; i < 20; i++) await send('HUP', busy.pid);
    const late = exitwatch('wait', String(quits.pid));
    await watching(late);

    expect(await busy.ended).toBe(0);
    await downtime.start();

    const rows = await watch.take(0);
    for await (const line of watch.lines) {
      if (/ (python3|sh) /.test(line)) rows.push(line);
      const ours = [exits, quits, raises, reloads, busy].map(({ pid }) => String(pid));
      if (ours.every((pid) => rows.some((row) => row.split(/ +/).includes(pid)))) break;
    }
    watch.child.kill('SIGTERM');
    const rowOf = ({ pid }: LineProcess) =>
      rows.find((row) => row.split(/ +/).includes(String(pid)));
    expect(rowOf(exits)).toEqual(AFTER('SIGTERM', asked));
    expect(rowOf(quits)).toEqual(AFTER('SIGQUIT', askedToQuit));
    expect(rowOf(raises)).toMatch(
      new RegExp(`itself, 2\\.3m after SIGTERM from ${askedToRaise} sh$`),
    );
    expect(rowOf(reloads)).toMatch(/ exited 0 +-$/);
    expect(rowOf(busy)).toMatch(new RegExp(` after SIGTERM from ${askedBusy} sh$`));

    await Promise.all([early.ended, late.ended]);
    expect(early.stderr).toContain(`SIGTERM from ${asked} sh, 2.3m before the end`);
    expect(late.stderr).toMatch(/by +itself \(sure: no signal killed it\); .* since 20\d\d-/);
    expect(late.stderr).not.toContain('since it began');

    const inJournal = async ({ dir, stateDir }: TestRecord, { pid }: { pid: number }) => {
      const end = await until(`the end of ${pid} in the journal`, async () => {
        for await (const row of readJournal({ dir, pid })) {
          if (row.event === 'exit' && row.parentPid === process.pid) return row;
        }
        return null;
      });
      const history = await call('history', '--state-dir', stateDir, '--pid', String(pid), ...OURS);
      const why = await call('why', '--all', '--state-dir', stateDir, String(pid));
      // Gaps are among the rows.
      const rowOfIt = history.lines.findLast((line) => line.includes(' python3 '));
      return { end, history: rowOfIt, why: why.lines.join('\n') };
    };
    const found = await inJournal(record, exits);
    expect(found.end.signalsReceived).toMatchObject([{ signal: 'SIGTERM', pid: asked }]);
    expect(found.end).toMatchObject({ traced: true, requestsSince: found.end.tracedSince });
    expect(found.history).toEqual(AFTER('SIGTERM', asked));
    expect(found.why).toContain(`SIGTERM from ${asked} sh, 2.3m before the end`);
    const raised = await inJournal(record, raises);
    expect(raised.end).toMatchObject({ signal: 'SIGTERM', raisedAfter: { pid: askedToRaise } });
    const pushed = await inJournal(record, busy);
    expect(pushed.end.signalsReceived[0]).toMatchObject({ signal: 'SIGTERM', pid: askedBusy });
    expect(pushed.history).toMatch(new RegExp(` after SIGTERM from ${askedBusy} sh$`));
    const reloaded = await inJournal(record, reloads);
    expect(reloaded.history).toMatch(/ exited 0 +-$/);
    expect(reloaded.why).toMatch(/^before +SIGHUP from/m);

    // What ended meanwhile only the recorder saw; of the others nobody claims that they were not asked.
    const recorded = await inJournal(downtime, busy);
    expect(recorded.end).toMatchObject({ source: 'recorder', traced: true });
    expect(recorded.end.signalsReceived[0]).toMatchObject({ signal: 'SIGTERM', pid: askedBusy });
    expect(recorded.history).toMatch(new RegExp(` after SIGTERM from ${askedBusy} sh$`));
    const later = await inJournal(downtime, exits);
    expect(later.end).toMatchObject({ traced: true, requestsSince: later.end.tracedSince });
    expect(later.history).toMatch(/ exited 0 +\?$/);
    expect(later.why).not.toContain('since it began');

    const story = await until('the end of the service', async () => {
      const { lines } = await call('service', 'why', 'web', '--state-dir', host.stateDir);
      const text = lines.join('\n');
      return text.includes('ended') ? text : null;
    });
    expect(story).toContain(`2.3m after SIGTERM from ${askedService} sh`);
  },
  DRAIN_SECONDS * 1000 + 120_000,
);
