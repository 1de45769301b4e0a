// Lane: storm

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { MemoryFolder } from '../support/bpffs';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program, REPOSITORY } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const EXITS = 5000 * ROUNDS;
const KILLS = 20 * ROUNDS;
const EXITS_PER_SECOND = 1000;

interface Stored {
  id?: string;
  pid: number;
  exitedNs: number;
  exitCode: number;
  source: string;
  wrong?: string;
  reason?: string;
}

itAsRecorder(
  `a store of exits is killed ${KILLS} times during ${EXITS} exits: it has each exit once`,
  async () => {
    using memory = new MemoryFolder();
    const file = join(memory.path, 'store');
    const store = (...more: string[]) => {
      const script = join(REPOSITORY, 'test', 'programs', 'exit-store.cjs');
      const args = [script, REPOSITORY, memory.stateDir, memory.pinDir, file, ...more];
      return new LineProcess(process.execPath, args);
    };
    const stored = () => {
      const text = readFileSync(file, 'utf8');
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      return whole.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Stored]));
    };
    const first = store();
    expect(await first.line()).toBe('ready recorder');
    const storm = new LineProcess(program('storm'), [String(EXITS), String(EXITS_PER_SECOND)]);
    first.child.kill('SIGKILL');
    await first.ended;
    let isOver = false;
    void storm.ended.then(() => (isOver = true));
    for (let kill = 1; kill < KILLS; kill++) {
      // Half of them kill themselves between storing an exit and committing it.
      const isOwnDoing = kill % 2 === 0 && !isOver;
      const running = store(...(isOwnDoing ? ['200'] : []));
      // After the last exit of the storm there may be too few for it to come to its own.
      await (isOwnDoing
        ? Promise.race([running.ended, storm.ended])
        : setTimeout(Math.random() * 400));
      running.child.kill('SIGKILL');
      await running.ended;
    }
    const report = (await storm.rest()).map((line) => line.split(' ').map(Number));
    expect(report).toHaveLength(EXITS);

    const last = store();
    expect(await last.line()).toBe('ready recorder');
    // Pids come round: an exit is the first one of its pid after the child before was reaped.
    const missing = () => {
      const byPid = new Map<number, Stored[]>();
      for (const each of stored().sort((a, b) => a.exitedNs - b.exitedNs)) {
        byPid.set(each.pid, [...(byPid.get(each.pid) ?? []), each]);
      }
      let beforeNs = 0;
      return report.flatMap(([pid = 0, reapedNs = 0], i) => {
        const events = byPid.get(pid) ?? [];
        const at = events.findIndex((event) => event.exitedNs > beforeNs);
        beforeNs = reapedNs;
        const [event] = at < 0 ? [] : events.splice(at, 1);
        if (event === undefined) return [`${pid} is missing`];
        return event.exitCode === i % 128 ? [] : [`${pid} exited with ${event.exitCode}`];
      });
    };
    await until(
      'all exits to be stored',
      () => missing().length === 0,
      () => missing().slice(0, 5).join(),
    );
    last.child.stdin.end();
    expect(await last.ended).toBe(0);
    const lines = stored();
    expect(
      lines.filter(({ wrong, reason }) => wrong !== undefined || reason !== undefined),
    ).toEqual([]);
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    // Both have reported exits.
    expect(new Set(lines.map(({ source }) => source))).toEqual(new Set(['connector', 'recorder']));
  },
  60_000 + ROUNDS * 20_000,
);
