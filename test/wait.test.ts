// Lane: patient

import { EventEmitter, once } from 'node:events';
import { setTimeout } from 'node:timers/promises';

import { LineProcess, run } from './support/programs';
import { arrives, blockUntil, until } from './support/wait';

const known = () => 'a sleep';

const never = () => new Promise<never>(() => undefined);

test('a wait that times out fails before jest’s own timeout, and says what it waited for and what is known', async () => {
  const told = /^timed out after \d\.\d s waiting for a miracle; instead: a sleep$/;
  const sleep = new LineProcess('sh', ['-c', 'echo yawns; echo snores >&2; exec sleep 1000']);
  expect(await sleep.line()).toBe('yawns');
  const name = `${sleep.pid}: sh -c echo yawns; echo snores >&2; exec sleep 1000`;
  const said = 'it runs, and has printed:\nyawns\non stderr:\nsnores';
  await Promise.all([
    expect(until('a miracle', () => false, known)).rejects.toThrow(told),
    expect(until('a miracle', never, known)).rejects.toThrow(told),
    expect(arrives('a miracle', once(new EventEmitter(), 'miracle'), known)).rejects.toThrow(told),
    expect(sleep.line()).rejects.toThrow(`the next line of ${name}; instead: ${said}`),
    expect(sleep.ended).rejects.toThrow(`the end of ${name}; instead: ${said}`),
    expect(run('sleep', ['10'])).rejects.toThrow('the end of sleep 10; instead: it has printed:'),
  ]);
  sleep.child.kill();
}, 4000);

test('a wait that blocks the event loop also fails before jest’s timeout', () => {
  const waiting = () => {
    blockUntil('a miracle', () => false, known);
  };
  expect(waiting).toThrow(/waiting for a miracle; instead: a sleep$/);
}, 2000);

test('a wait that has timed out stops looking, and its stack leads to the test', async () => {
  let looks = 0;
  const error = await until('a miracle', () => ++looks < 0).catch((reason: unknown) => reason);
  expect((error as Error).stack).toMatch(/^Error: timed out .* a miracle\n[^]*wait\.test\.ts/);
  const before = looks;
  await setTimeout(20);
  expect(looks).toBeLessThanOrEqual(before + 1);
}, 2000);

test('a wait that succeeds resolves with the value and leaves no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  let looks = 0;
  expect(await until('the third look', () => ++looks === 3 && { looks })).toEqual({ looks: 3 });
  expect(await until('nothing that is nothing', () => 0)).toBe(0);
  expect(await arrives('a value', Promise.resolve(7))).toBe(7);
  await expect(arrives('a value', Promise.reject(new Error('no')))).rejects.toThrow('no');
  await expect(until('a value', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  blockUntil('the sixth look', () => ++looks === 6);
  expect(timers()).toBe(before);
});

test('a program that ends before it has printed enough lines is reported', async () => {
  const short = new LineProcess('sh', ['-c', 'echo one; exit 7']);
  await expect(short.take(2)).rejects.toThrow(
    /has printed 1 lines instead of 2\nit has ended \(7\)/,
  );
});
