import { mkdirSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { PROGRAMS, REPOSITORY, run } from './programs';

/** Compiles all C++ sources of some folders into one program, and returns its path. */
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
  const compile = async (...args: string[]) =>
    run(process.env['CXX'] ?? 'c++', ['-std=c++17', '-pthread', ...flags, ...args]);
  const includes = ['native', 'test/native'].map((folder) => `-I${join(REPOSITORY, folder)}`);
  const objects = `${program}.objects`;
  mkdirSync(objects, { recursive: true });
  const left = [...files.entries()];
  const compileSome = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [i, file] = next;
      const options = ['-O1', '-g', '-Wall', '-Wextra', ...includes];
      await compile(...options, '-c', file, '-o', join(objects, `${i}.o`));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, compileSome));
  await compile(...files.map((_, i) => join(objects, `${i}.o`)), '-o', program);
  return program;
}
