import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import { PROGRAMS, REPOSITORY, run } from './support/programs';

test('native/core passes its own tests, under AddressSanitizer and UBSan', async () => {
  const program = join(PROGRAMS, 'core_test');
  const core = join(REPOSITORY, 'native', 'core');
  const sources = [core, join(__dirname, 'native')].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.cc'))
      .map((name) => join(folder, name)),
  );
  await run(process.env['CXX'] ?? 'c++', [
    ...['-std=c++17', '-O1', '-g', '-Wall', '-Wextra', '-fsanitize=address,undefined'],
    ...['-fno-sanitize-recover=all', `-I${join(REPOSITORY, 'native')}`],
    ...[...sources, '-o', program],
  ]);
  const { stdout } = await run(program).catch((error: unknown) => error as { stdout: string });
  expect(stdout).toBe('0 wrong\n');
});
