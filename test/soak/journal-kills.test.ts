// Lane: storm

import { setTimeout } from 'node:timers/promises';

import type { JournalExit } from '../../src/journal';

import { call } from '../support/command';
import { itAsRecorder } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { TestRecord } from '../support/recording';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';

const EXITS = 2000 * ROUNDS;
const KILLS = 8 * ROUNDS;
const EXITS_PER_SECOND = 500;

itAsRecorder(
  `record is killed ${KILLS} times during ${EXITS} exits: the journal has each once, without a gap`,
  async () => {
    await using record = new TestRecord();
    await record.start();
    const storm = new LineProcess(program('storm'), [String(EXITS), String(EXITS_PER_SECOND)]);
    for (let kill = 0; kill < KILLS; kill++) {
      await record.kill('SIGKILL');
      record.spawn();
      // At any moment: while it starts, while it writes, while it commits.
      await setTimeout(Math.random() * 1000);
    }
    const report = (await storm.rest()).map((line) => line.split(' ').map(Number));
    expect(report).toHaveLength(EXITS);
    await record.kill('SIGKILL');
    expect(await record.start()).toMatchObject({ memory: 'recorder' });

    // Pids come round: an exit is the first one of its pid after the child before was reaped.
    const missing = (ends: readonly JournalExit[]) => {
      const byPid = new Map<number, JournalExit[]>();
      for (const end of ends) byPid.set(end.pid, [...(byPid.get(end.pid) ?? []), end]);
      let beforeNs = 0;
      return report.flatMap(([pid = 0, reapedNs = 0], i) => {
        const events = byPid.get(pid) ?? [];
        const at = events.findIndex(({ exitedNs }) => (exitedNs ?? 0) > beforeNs);
        beforeNs = reapedNs;
        const [event] = at < 0 ? [] : events.splice(at, 1);
        if (event === undefined) return [`${pid} is missing`];
        return event.exitCode === i % 128 ? [] : [`${pid} exited with ${event.exitCode}`];
      });
    };
    let lacks: string[] = [];
    const rows = await until(
      'all exits to be in the journal',
      async () => {
        const all = await record.history();
        lacks = missing(all.filter((row) => row.event === 'exit'));
        return lacks.length === 0 ? all : null;
      },
      () => `${lacks.length}: ${lacks.slice(0, 5).join()}`,
    );
    expect(rows.filter(({ event }) => event === 'gap')).toEqual([]);
    const ends = rows.filter((row) => row.event === 'exit');
    expect(new Set(ends.map(({ id }) => id)).size).toBe(ends.length);
    const times = ends.map(({ exitedNs }) => exitedNs ?? 0);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const [pid = 0] = report.at(-1) ?? [];
    const why = await call('why', String(pid), '--state-dir', record.stateDir);
    expect(why.lines[0]).toMatch(new RegExp(`^${pid} .* exited ${(EXITS - 1) % 128}; `));
  },
  120_000 + ROUNDS * 30_000,
);
