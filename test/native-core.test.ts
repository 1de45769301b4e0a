import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { PROGRAMS, REPOSITORY, run } from './support/programs';

test('native/core passes its own tests, under AddressSanitizer and UBSan', async () => {
  const program = join(PROGRAMS, 'core_test');
  const core = join(REPOSITORY, 'native', 'core');
  const sources = readdirSync(core)
    .filter((name) => name.endsWith('.cc'))
    .map((name) => join(core, name));
  await run(process.env['CXX'] ?? 'c++', [
    ...['-std=c++17', '-O1', '-g', '-Wall', '-Wextra', '-fsanitize=address,undefined'],
    ...['-fno-sanitize-recover=all', `-I${join(REPOSITORY, 'native')}`],
    ...[...sources, join(__dirname, 'native', 'core_test.cc'), '-o', program],
  ]);
  const { stdout } = await run(program).catch((error: unknown) => error as { stdout: string });
  expect(stdout).toBe('0 wrong\n');
});
