// Lane: patient

import { spawnSync } from 'node:child_process';

import { compileNative } from '../support/compile-native';
import { itIf } from '../support/privilege';
import { run } from '../support/programs';

// Each compilation takes a minute, or several on a busy machine.
jest.setTimeout(600_000);

/** The output of a program, even if it fails. */
async function outputOf(program: string, ...args: string[]): Promise<string> {
  const result = await run(program, args).catch(
    (error: unknown) => error as { stdout: string; stderr: string },
  );
  return result.stdout + result.stderr;
}

test('native/core passes its own tests under AddressSanitizer and UBSan', async () => {
  const program = await compileNative('core-test', {
    sources: ['native/core', 'test/native/core'],
    flags: ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'],
  });
  expect(await outputOf(program)).toBe('0 wrong\n');
});

/** It may be missing outside CI. */
const hasValgrind = spawnSync('valgrind', ['--version']).status === 0;

itIf(hasValgrind, 'needs valgrind')('native/core passes its own tests under valgrind', async () => {
  const program = await compileNative('core-test-plain', {
    sources: ['native/core', 'test/native/core'],
    flags: [],
  });
  const memcheck = ['-q', '--leak-check=full', '--error-exitcode=9', program];
  expect(await outputOf('valgrind', ...memcheck)).toBe('0 wrong\n');
});

describe('readers without Node', () => {
  test.each([
    ['AddressSanitizer, LeakSanitizer and UBSan', 'address,undefined'],
    ['ThreadSanitizer', 'thread'],
  ])('are clean under %s', async (_, sanitizer) => {
    const program = await compileNative(`reader-test-${sanitizer.replace(',', '-')}`, {
      sources: ['native/core', 'native/linux', 'test/native/linux'],
      flags: [`-fsanitize=${sanitizer}`, '-fno-sanitize-recover=all', '-Wno-tsan'],
    });
    expect(await outputOf(program, '2')).toBe('0 wrong\n');
  });
});
