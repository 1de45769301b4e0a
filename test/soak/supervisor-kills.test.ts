// Lane: patient

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { marked, markedService, Supervised } from '../support/supervised';
import { until } from '../support/wait';

jest.setTimeout(180_000);

type When = 'before' | 'amid' | 'after';

/** More than any of these writes. */
const MOST_WRITES = 40;

/**
 * Kills a supervisor at each of its durable writes while it does something, and expects the same state
 * once another one has done it again.
 */
async function killAtEach(
  when: When,
  prepare: (one: Supervised, word: string) => Promise<unknown>,
  act: (one: Supervised, word: string) => Promise<unknown>,
  wanted: readonly string[],
): Promise<number> {
  for (let write = 1; write < MOST_WRITES; write++) {
    const stateDir = mkdtempSync(join(tmpdir(), 'exitwatch-kills-'));
    const word = `kills-${process.pid}-${Math.random().toString(36).slice(2)}`;
    const marks = () =>
      marked(word)
        .map(({ mark }) => mark)
        .sort();
    const isThere = () => JSON.stringify(marks()) === JSON.stringify([...wanted].sort());
    const first = new Supervised(stateDir);
    await first.ready;
    await prepare(first, word);
    await first.kill();

    const victim = new Supervised(stateDir, { KILL_AT: `${write}`, KILL_WHEN: when });
    await victim.ready;
    const done = act(victim, word).then(
      () => true,
      () => true,
    );
    const isDone = Promise.all([
      done,
      until('its end or its goal', () => isThere() || victim.process.child.signalCode),
    ]);
    await Promise.race([isDone, victim.process.ended]);
    const wasKilled = victim.process.child.signalCode === 'SIGKILL';
    await victim.kill();

    const next = new Supervised(stateDir);
    await next.ready;
    await act(next, word);
    await until(`${wanted.join(' ')} after write ${write}`, isThere, () =>
      JSON.stringify([marks(), next.told]),
    );
    // It stays so: each name has one run.
    const pids = marked(word).map(({ pid }) => pid);
    await next.request('apply', { services: JSON.parse(lastApplied(word)) as unknown });
    expect(marked(word).map(({ pid }) => pid)).toEqual(pids);
    await next.request('apply', { services: [] });
    await until('nothing to be left', () => marks().length === 0);
    await until(
      'no service',
      async () => ((await next.request('services')) as unknown[]).length === 0,
    );
    await next.request('close');
    await next.kill();
    rmSync(stateDir, { recursive: true, force: true });
    if (!wasKilled) return write;
  }
  throw new Error('it never came to an end');
}

const applied = new Map<string, string>();
const lastApplied = (word: string) => applied.get(word) ?? '[]';

const apply = (one: Supervised, word: string, ...marks: [string, string][]) => {
  const services = marks.map(([name, variant]) => markedService(word, name, variant));
  applied.set(word, JSON.stringify(services));
  return one.request('apply', { services });
};

describe.each<When>(['before', 'amid', 'after'])('a supervisor that is killed %s', (when) => {
  it('each durable write of a start ends in the same state', async () => {
    const writes = await killAtEach(
      when,
      () => Promise.resolve(),
      (one, word) => apply(one, word, ['a', '1']),
      ['a:1'],
    );
    expect(writes).toBeGreaterThan(2);
  });

  it('each durable write of a stop ends in the same state', async () => {
    const writes = await killAtEach(
      when,
      async (one, word) => {
        await apply(one, word, ['a', '1'], ['b', '1']);
        await until('both', () => marked(word).length === 2);
      },
      (one) => one.request('stop', { name: 'a' }),
      ['b:1'],
    );
    expect(writes).toBeGreaterThan(2);
  });

  it('each durable write of an apply ends in the same state', async () => {
    const writes = await killAtEach(
      when,
      async (one, word) => {
        await apply(one, word, ['a', '1'], ['b', '1'], ['c', '1']);
        await until('all three', () => marked(word).length === 3);
      },
      (one, word) => apply(one, word, ['a', '1'], ['b', '2'], ['d', '1']),
      ['a:1', 'b:2', 'd:1'],
    );
    expect(writes).toBeGreaterThan(6);
  });
});
