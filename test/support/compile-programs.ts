import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';

import { PROGRAMS } from './programs';

/**
 * Compiles the C programs of the tests. Jest calls it once before all tests; another run may be doing
 * the same.
 */
export default function compilePrograms(): void {
  mkdirSync(PROGRAMS, { recursive: true });
  compileAll('programs', '', ['-pthread']);
  compileAll('preload', '.so', ['-shared', '-fPIC']);
}

function compileAll(folder: string, suffix: string, flags: readonly string[]): void {
  const sources = join(__dirname, '..', folder);
  for (const source of readdirSync(sources).filter((name) => name.endsWith('.c'))) {
    const target = join(PROGRAMS, `${basename(source, '.c')}${suffix}`);
    const fresh = `${target}.${process.pid}`;
    execFileSync(
      process.env['CC'] ?? 'cc',
      ['-O1', '-Wall', '-Wextra', ...flags, join(sources, source), '-o', fresh],
      { stdio: 'inherit' },
    );
    renameSync(fresh, target);
  }
}
