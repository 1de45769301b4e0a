import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { itIf } from './privilege';
import { REPOSITORY } from './programs';

/** Packages for tests that are too large for every developer to install. */
export interface Fetched {
  folder: string;
  /**
   * Declares a test that uses them. Outside CI the test is skipped if they are missing, and its
   * title says why.
   */
  it: jest.It;
}

/** Fetches packages from the registry on first use, and keeps them between runs. */
export function fetchPackages(name: string, dependencies: Record<string, string>): Fetched {
  const folder = join(REPOSITORY, 'build', name);
  const manifest = JSON.stringify({ private: true, dependencies });
  const file = join(folder, 'package.json');
  const isThere =
    existsSync(join(folder, 'node_modules', '.package-lock.json')) &&
    readFileSync(file, 'utf8') === manifest;
  if (isThere) return { folder, it };
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, manifest);
  const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];
  const options = { cwd: folder, encoding: 'utf8', timeout: 240_000 } as const;
  const { status, stderr, error } = spawnSync('npm', args, options);
  if (status === 0) return { folder, it };
  rmSync(file);
  const [why = ''] = (error?.message ?? stderr)
    .split('\n')
    .filter((line) => !line.includes(' warn '));
  const need = `needs ${Object.keys(dependencies).join(', ')} from the registry: ${why}`;
  if (process.env['CI'] !== undefined) throw new Error(need);
  return { folder, it: itIf(false, need) };
}
