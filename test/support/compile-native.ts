import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

import { PROGRAMS, REPOSITORY, run } from './programs';

const OBJECTS = join(PROGRAMS, 'objects');

const INCLUDED = ['native', 'test/native'];

/**
 * Compiles all C++ sources of some folders into one program, and returns its path. What another program
 * has compiled in the same way is used again.
 */
export async function compileNative(
  name: string,
  { sources, flags }: { sources: readonly string[]; flags: readonly string[] },
): Promise<string> {
  mkdirSync(OBJECTS, { recursive: true });
  const options = ['-std=c++17', '-pthread', '-O1', '-g1', '-Wall', '-Wextra', ...flags];
  const includes = INCLUDED.map((folder) => `-I${join(REPOSITORY, folder)}`);
  const compiler = process.env['CXX'] ?? 'c++';
  const common = hashOf([compiler, ...options], INCLUDED.flatMap(filesIn(/\.h$/)));
  const objects = sources.flatMap(filesIn(/\.cc$/)).map((file) => ({
    file,
    object: join(OBJECTS, `${hashOf([common], [file])}.o`),
  }));
  const left = objects.filter(({ object }) => !existsSync(object));
  const compileSome = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const fresh = `${next.object}.${process.pid}`;
      await run(compiler, [...options, ...includes, '-c', next.file, '-o', fresh]);
      renameSync(fresh, next.object);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, compileSome));
  const program = join(PROGRAMS, name);
  await run(compiler, [...options, ...objects.map(({ object }) => object), '-o', program]);
  return program;
}

const filesIn = (pattern: RegExp) => (folder: string) =>
  readdirSync(join(REPOSITORY, folder), { encoding: 'utf8', recursive: true })
    .filter((file) => pattern.test(file))
    .sort()
    .map((file) => join(REPOSITORY, folder, file));

function hashOf(words: readonly string[], files: readonly string[]): string {
  const hash = createHash('sha256').update(words.join('\0'));
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest('hex').slice(0, 32);
}
