import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A clean clone of the last commit; `folder` is made for it, and is yours to remove. */
export function cloneLastCommit(name) {
  const folder = mkdtempSync(join(tmpdir(), `ew-${name}-`));
  chmodSync(folder, 0o755); // tests run programs of the clone as others
  const clone = join(folder, 'exitwatch');
  execFileSync('git', ['clone', '--quiet', process.cwd(), clone]);
  const head = ['-C', clone, 'rev-parse', '--short', 'HEAD'];
  const commit = execFileSync('git', head, { encoding: 'utf8' }).trim();
  return { folder, clone, commit };
}
