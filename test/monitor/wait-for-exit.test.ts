// Lane: patient

import { ExitwatchError, identify, waitForExit, type WaitForExitOptions } from '../../src';

import { LineProcess, REPOSITORY } from '../support/programs';
import { readerThreads } from '../support/readers';
import { arrives, until } from '../support/wait';

/** The code of the error that a promise rejects with. */
async function codeOf(waiting: Promise<unknown>): Promise<string> {
  return waiting.then(
    () => 'resolved',
    (error: unknown) => (error instanceof ExitwatchError ? error.code : String(error)),
  );
}

describe('waitForExit', () => {
  /** Readers of other tests in this run. */
  const others = readerThreads('self');

  test('resolves with the exit of a process, given by pid or by identity', async () => {
    const child = new LineProcess('sh', ['-c', 'read line; exit 7']);
    const identity = identify(child.pid);
    if (identity === null) throw new Error('it has no identity');
    const waits = [waitForExit(child.pid), waitForExit(identity)];
    child.child.stdin.write('\n');
    for (const event of await arrives('both exits', Promise.all(waits))) {
      expect(event).toMatchObject({ event: 'exit', pid: child.pid, exitCode: 7, lossless: true });
    }
  });

  test('many processes share one reader, which is gone after the last exit', async () => {
    const children = Array.from({ length: 50 }, (_, i) => {
      return new LineProcess('sh', ['-c', `read line; exit ${i}`]);
    });
    const waits = children.map(({ pid }) => waitForExit(pid));
    // A second thread exists only while a canary lives.
    await until('one reader to be left', () => readerThreads('self') === others + 1);
    for (const { child } of children) child.stdin.write('\n');
    const ends = await arrives('all exits', Promise.all(waits));
    expect(ends.map(({ exitCode }) => exitCode)).toEqual(children.map((_, i) => i));
    expect(readerThreads('self')).toBe(others);
  });

  test('a process that has already ended is reported as far as it is known', async () => {
    const child = new LineProcess('sh', ['-c', 'read line']);
    const identity = identify(child.pid);
    child.child.stdin.write('\n');
    await child.ended;
    if (identity === null) throw new Error('it had no identity');
    expect(await arrives('what is known of its exit', waitForExit(identity))).toMatchObject({
      ...{ how: 'unknown', unknownReason: 'gone-before-watch' },
    });
  });

  test('rejects after timeoutMs or an abort, and the process lives on', async () => {
    const child = new LineProcess('sleep', ['1000']);
    const abort = new AbortController();
    const tooLong = codeOf(waitForExit(child.pid, { timeoutMs: 50 }));
    const abandoned = codeOf(waitForExit(child.pid, { signal: abort.signal }));
    const hopeless = codeOf(waitForExit(child.pid, { signal: AbortSignal.abort() }));
    expect(await tooLong).toBe('ERR_EXITWATCH_TIMEOUT');
    abort.abort();
    expect(await abandoned).toBe('ERR_EXITWATCH_ABORTED');
    expect(await hopeless).toBe('ERR_EXITWATCH_ABORTED');
    expect(readerThreads('self')).toBe(others);
    expect(child.child.exitCode).toBeNull();
    child.child.kill();
  });

  test('lets a program end after the exit, however long its timeout is', async () => {
    const child = new LineProcess('sh', ['-c', 'read line']);
    const script = `
      const { waitForExit } = require(${JSON.stringify(REPOSITORY)});
      waitForExit(${child.pid}, { timeoutMs: 3_600_000 }).then(({ how }) => console.log(how));
      console.log('armed');
    `;
    const program = new LineProcess(process.execPath, ['-e', script]);
    expect(await program.line()).toBe('armed');
    child.child.stdin.write('\n');
    expect(await program.line()).toBe('exited');
    expect(await program.ended).toBe(0);
  });

  test('names the process in the error of a timeout', async () => {
    const { child, pid } = new LineProcess('sleep', ['1000']);
    await expect(waitForExit(pid, { timeoutMs: 50 })).rejects.toThrow(
      `process ${pid} did not end within 50 ms`,
    );
    await expect(waitForExit(pid, { signal: AbortSignal.timeout(50) })).rejects.toThrow(
      `waiting for the end of process ${pid} was aborted`,
    );
    child.kill();
  });

  test.each<[unknown, unknown, string]>([
    [0, {}, 'ERR_EXITWATCH_INVALID_PID'],
    ['1', {}, 'ERR_EXITWATCH_INVALID_PID'],
    [null, {}, 'ERR_EXITWATCH_INVALID_IDENTITY'],
    [2, {}, 'ERR_EXITWATCH_KERNEL_THREAD'],
    [1, { timeoutMs: -1 }, 'ERR_EXITWATCH_INVALID_OPTION'],
    [1, { timeoutMs: '1' }, 'ERR_EXITWATCH_INVALID_OPTION'],
    [1, { signal: {} }, 'ERR_EXITWATCH_INVALID_OPTION'],
    [1, { scope: 'all' }, 'ERR_EXITWATCH_INVALID_OPTION'],
    [1, null, 'ERR_EXITWATCH_INVALID_OPTION'],
  ])('rejects for %j with %j', async (target, options, code) => {
    expect(await codeOf(waitForExit(target as number, options as WaitForExitOptions))).toBe(code);
    expect(readerThreads('self')).toBe(others);
  });
});
