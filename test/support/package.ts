import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { REPOSITORY, run } from './programs';
import { until } from './wait';

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
  const hash = hashOf(files);
  const kept = join(PACKED, `${hash}.tgz`);
  // Files that run beside each other would all pack the same.
  const mayPack = () => tryLock(join(PACKED, `${hash}.lock`));
  await until('the package that another test file packs', () => existsSync(kept) || mayPack());
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
  for (const name of readdirSync(PACKED)) {
    if (!name.startsWith(hash)) rmSync(join(PACKED, name), { force: true });
  }
  cpSync(tarball, `${kept}.new`);
  renameSync(`${kept}.new`, kept);
  return { folder, tarball };
}

/** Whether we are the one that packs. A lock of a process that has ended counts for nothing. */
function tryLock(path: string): boolean {
  mkdirSync(PACKED, { recursive: true });
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    const owner = readFileSync(path, { encoding: 'latin1', flag: 'a+' });
    if (existsSync(`/proc/${owner}`)) return false;
    rmSync(path, { force: true });
    return false; // try again: others may do the same
  }
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
