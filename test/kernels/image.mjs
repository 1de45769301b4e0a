import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

import { PREFIXES } from '../../scripts/cross-compilers.mjs';
import { compileTestPrograms } from '../../scripts/test-programs.mjs';

import { Initramfs } from './cpio.mjs';
import { REPOSITORY } from './folders.mjs';
import { addJest } from './jest.mjs';
import { foldersOf } from './node-modules.mjs';
import { addUserland } from './userland.mjs';

const GUEST = join(import.meta.dirname, 'guest');

const BUILD = join(REPOSITORY, 'scripts', 'build.mjs');

/**
 * Everything that guests of an architecture boot with. `checkout` is the package that it contains.
 */
export async function buildImage({ arch, checkout }) {
  const initramfs = new Initramfs();
  addUserland(initramfs, arch);
  initramfs.copy(join(GUEST, 'init'), '/init');
  initramfs.copy(GUEST, '/guest');
  addPackage(initramfs, arch, checkout);
  addJest(initramfs, { arch, repository: REPOSITORY });
  const programs = join(REPOSITORY, 'build', 'kernels', arch, 'test-programs');
  const compiler = arch === process.arch ? undefined : `${PREFIXES[arch]}gcc`;
  await compileTestPrograms(programs, compiler);
  initramfs.copy(programs, '/exitwatch/build/test-programs');
  return initramfs.toBuffer();
}

/** An archive with the job of one boot, to be appended to the image. */
export function jobArchive(job, files = []) {
  const archive = new Initramfs();
  for (const file of files) archive.copy(file, join('/job', basename(file)));
  archive.file('/guest/job.json', JSON.stringify(job));
  return archive.toBuffer();
}

function addPackage(initramfs, arch, checkout) {
  for (const name of ['package.json', 'dist'])
    initramfs.copy(join(checkout, name), join('/exitwatch', name));
  const name = 'exitwatch.node';
  const isForeign = arch !== process.arch;
  if (isForeign)
    execFileSync(process.execPath, [BUILD, `addon-${arch}`], { cwd: checkout, stdio: 'inherit' });
  const binary = readFileSync(join(checkout, 'build', isForeign ? arch : 'Release', name));
  initramfs.file(join('/exitwatch', 'build', 'Release', name), binary);
  for (const folder of foldersOf('bindings', REPOSITORY))
    initramfs.copy(folder, join('/exitwatch', relative(REPOSITORY, folder)));
}
