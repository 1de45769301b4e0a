import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { REPOSITORY, run } from './programs';

export const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  version: string;
};

/** Kept between runs and shared by the test files, because the binaries take minutes. */
const PACKED = join(REPOSITORY, 'build', 'packed');

/** Packs a clone with `npm pack` into a new folder. */
export async function pack(): Promise<{ folder: string; tarball: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-package-'));
  const tarball = join(folder, `exitwatch-${version}.tgz`);
  const { stdout } = await run('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: REPOSITORY,
  });
  const files = stdout
    .trim()
    .split('\n')
    .filter((file) => !file.startsWith('test/') && existsSync(join(REPOSITORY, file)));
  const kept = join(PACKED, `${hashOf(files)}.tgz`);
  if (existsSync(kept)) {
    cpSync(kept, tarball);
    return { folder, tarball };
  }
  const clone = join(folder, 'clone');
  for (const file of files) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(REPOSITORY, file), join(clone, file));
  }
  symlinkSync(join(REPOSITORY, 'node_modules'), join(clone, 'node_modules'));
  const env = { ...process.env, EXITWATCH_BUILDS: join(REPOSITORY, 'build', 'builds') };
  await run('npm', ['pack', '--pack-destination', folder], { cwd: clone, env });
  rmSync(PACKED, { recursive: true, force: true });
  mkdirSync(PACKED, { recursive: true });
  cpSync(tarball, `${kept}.new`);
  renameSync(`${kept}.new`, kept);
  return { folder, tarball };
}

/**
 * A hash of everything the package is made from. In CI the package has the binaries of every
 * machine.
 */
function hashOf(files: readonly string[]): string {
  const hash = createHash('sha256').update(`${process.version} ${process.env['CI'] ?? ''}`);
  for (const file of files) hash.update(`\0${file}\0`).update(readFileSync(join(REPOSITORY, file)));
  return hash.digest('hex');
}

/** A new, empty project. */
export function newProject(folder: string, name: string): string {
  const project = join(folder, name);
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  return project;
}
