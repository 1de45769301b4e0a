import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

import { PROGRAMS } from './programs';

/** Compiles the C programs that the tests run; jest calls it once, before all tests. */
export default function compilePrograms(): void {
  const sources = join(__dirname, '..', 'programs');
  mkdirSync(PROGRAMS, { recursive: true });
  for (const source of readdirSync(sources)) {
    const program = join(PROGRAMS, basename(source, '.c'));
    const flags = ['-O1', '-Wall', '-Wextra', '-pthread'];
    execFileSync(process.env['CC'] ?? 'cc', [...flags, join(sources, source), '-o', program], {
      stdio: 'inherit',
    });
  }
}
