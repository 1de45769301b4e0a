import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { PROGRAMS, REPOSITORY, run } from './programs';

/** Compiles all C++ sources of some folders into one program; its path. */
export async function compileNative(
  name: string,
  { sources, flags }: { sources: readonly string[]; flags: readonly string[] },
): Promise<string> {
  mkdirSync(PROGRAMS, { recursive: true });
  const program = join(PROGRAMS, name);
  const files = sources.flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith('.cc'))
      .map((file) => join(REPOSITORY, folder, file)),
  );
  await run(process.env['CXX'] ?? 'c++', [
    ...['-std=c++17', '-O1', '-g', '-Wall', '-Wextra', '-pthread', ...flags],
    ...[`-I${join(REPOSITORY, 'native')}`, `-I${join(REPOSITORY, 'test', 'native')}`],
    ...[...files, '-o', program],
  ]);
  return program;
}
