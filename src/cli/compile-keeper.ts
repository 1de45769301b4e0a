import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { PACKAGE_VERSION } from '../native/package-version.js';

import { cCompiler } from './toolchain.js';

const STATIC = ['-static', '-s'];

/**
 * Compiles the program that keeps processes; static, so that it runs with every C library. Some systems
 * have no static one to link with: there it is linked as usual.
 *
 * @param root the folder that has `native/keeper`
 * @param flags more flags of the compiler, instead of those for a static program
 * @returns whether it could be compiled; if not, the compiler has said why
 */
export function compileKeeper(
  root: string,
  target: string,
  { cc, flags }: { cc?: string; flags?: readonly string[] } = {},
): boolean {
  const folder = join(root, 'native', 'keeper');
  const sources = readdirSync(folder).filter((name) => name.endsWith('.c'));
  mkdirSync(dirname(target), { recursive: true });
  // A keeper that runs from the old file goes on with that.
  const fresh = `${target}.new`;
  const args = [
    ...['-std=c11', '-O2', '-Wall', '-Wextra', '-D_GNU_SOURCE'],
    ...[`-DKEEPER_VERSION="${PACKAGE_VERSION}"`, '-o', fresh],
    ...sources.map((name) => join(folder, name)),
  ];
  const [program, ...first] = cc === undefined ? cCompiler() : [cc];
  const attempts = flags === undefined ? [STATIC, []] : [flags];
  const isCompiled = attempts.some((more, i) => {
    const stdio = i === attempts.length - 1 ? 'inherit' : 'ignore';
    const { error, status } = spawnSync(program, [...first, ...args, ...more], { stdio });
    if (error !== undefined) process.stderr.write(`${error.message}\n`);
    return status === 0;
  });
  if (isCompiled) renameSync(fresh, target);
  return isCompiled;
}
