import { once } from 'node:events';

import { ExitMonitor, type ExitEvent } from '../src';

import { describeForEachFilter } from './support/filters';
import { itAsRoot } from './support/privilege';
import { LineProcess, program } from './support/programs';

const LIVES = 200;

describeForEachFilter(() => {
  describe('one pid that process after process is given at once', () => {
    for (const scope of ['watched', 'all'] as const) {
      itAsRoot(`each watch tells the end of its own process (scope ${scope})`, async () => {
        await using monitor = new ExitMonitor({ scope });
        await monitor.start();
        const reuse = new LineProcess(program('reuse'), [String(LIVES), '--wait']);
        const ends: Promise<ExitEvent>[] = [];
        const ids = new Set<string>();
        const codes: number[] = [];
        for (let line = await reuse.line(); line !== undefined; line = await reuse.line()) {
          const [pid = 0, code = 0] = line.split(' ').map(Number);
          const watch = monitor.watch(pid);
          ids.add(watch.identity.id);
          ends.push(watch.exited);
          codes.push(code);
          reuse.child.stdin.write('go\n');
        }
        expect(await reuse.ended).toBe(0);
        expect((await Promise.all(ends)).map(({ exitCode }) => exitCode)).toEqual(codes);
        expect(ids.size).toBe(LIVES);
      });
    }

    itAsRoot('each is told, also where nobody watches', async () => {
      await using monitor = new ExitMonitor({ scope: 'all' });
      const exits: ExitEvent[] = [];
      monitor.on('exit', (event) => exits.push(event));
      await monitor.start();
      const reuse = new LineProcess(program('reuse'), [String(LIVES)]);
      const lines = await reuse.rest();
      expect(await reuse.ended).toBe(0);
      expect(lines).toHaveLength(LIVES);
      const wanted = Number(lines[0]?.split(' ')[0]);
      // A stranger that was quicker to take the pid, and made us try again, is not ours.
      const isOurs = ({ pid, parentPid }: ExitEvent) =>
        pid === wanted && (parentPid === reuse.pid || parentPid === null);
      while (exits.filter(isOurs).length < LIVES) await once(monitor, 'exit');
      const codes = exits.filter(isOurs).map(({ exitCode }) => exitCode);
      expect(codes.toSorted()).toEqual(lines.map((line) => Number(line.split(' ')[1])).toSorted());
    });
  });
});
