// Lane: storm

import { ExitMonitor } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { Crowd } from '../support/crowd';
import { exitsOf } from '../support/ends';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program, run } from '../support/programs';

const RING_BYTES = 64 * 1024;

itAsRecorder.each(['watched', 'all'] as const)(
  'scope %s: floods of signals and of exits take nothing from what is watched',
  async (scope) => {
    using memory = new MemoryFolder();
    await using crowd = await Crowd.of(500);
    const { stateDir, recorder } = memory.options;
    const options = {
      ...{ scope, stateDir },
      recorder: { ...recorder, ringBytes: RING_BYTES, signalBytes: RING_BYTES },
    };
    const monitor = new ExitMonitor(options);
    await monitor.start();
    for (const pid of crowd.pids) monitor.watch(pid);
    await monitor.close();
    const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all'];
    await run('setpriv', [...nobody, program('flood'), '1000000']);
    const storm = new LineProcess(program('storm'), ['5000']);
    await storm.rest();
    const killer = new LineProcess('sh', ['-c', `kill -TERM ${crowd.pids.join(' ')}`]);
    expect(await killer.ended).toBe(0);
    crowd.end();
    await crowd.reaped();

    const next = new ExitMonitor(options);
    const { restored } = await next.start();
    const ends = await exitsOf(restored);
    expect(ends.map(({ pid }) => pid)).toEqual(crowd.pids);
    const wrong = ends.filter(
      ({ signal, sender }) => signal !== 'SIGTERM' || sender?.pid !== killer.pid,
    );
    expect(wrong).toEqual([]);
    if (scope === 'watched') expect(ends.filter(({ traced }) => !traced)).toEqual([]);
    await next.close({ forget: true });
  },
);
