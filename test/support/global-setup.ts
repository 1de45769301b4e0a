import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { beginRun } from './left/run-check';
import { REPOSITORY } from './programs';

/** Jest calls it once before all tests. */
export default function globalSetup(): void {
  requireFreshBuild();
  const script = join(REPOSITORY, 'scripts', 'test-programs.mjs');
  execFileSync(process.execPath, [script], { stdio: 'inherit' });
  beginRun();
}

/** Tests run dist/: one that is older than src/ would show what the product did before a change. */
function requireFreshBuild(): void {
  const [src, dist] = ['src', 'dist'].map((folder) => join(REPOSITORY, folder)) as [string, string];
  const sources = readdirSync(src, { recursive: true, encoding: 'utf8' });
  const isStale = (name: string) =>
    name.endsWith('.ts') &&
    modified(join(src, name)) > modified(join(dist, name.replace(/\.ts$/, '.js')));
  const stale = sources.find(isStale);
  if (stale !== undefined)
    throw new Error(`dist/ is older than ${join('src', stale)}; run \`npm run build\``);
}

/** 0 if it does not exist. */
function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
