import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, renameSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

import { Initramfs } from './cpio.mjs';
import { REPOSITORY } from './folders.mjs';
import { addJest } from './jest.mjs';
import { foldersOf } from './node-modules.mjs';
import { addUserland } from './userland.mjs';

const GUEST = join(import.meta.dirname, 'guest');

const BUILD = join(REPOSITORY, 'scripts', 'build.mjs');

const COMPILERS = { x64: 'x86_64-linux-gnu-gcc', arm64: 'aarch64-linux-gnu-gcc' };

/**
 * Everything that guests of an architecture boot with. `checkout` is the package that it contains.
 */
export function buildImage({ arch, checkout }) {
  const initramfs = new Initramfs();
  addUserland(initramfs, arch);
  initramfs.copy(join(GUEST, 'init'), '/init');
  initramfs.copy(GUEST, '/guest');
  addPackage(initramfs, arch, checkout);
  addJest(initramfs, { arch, repository: REPOSITORY });
  const programs = compilePrograms(arch);
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

/** Compiles the C programs of the tests. */
function compilePrograms(arch) {
  const folder = join(REPOSITORY, 'build', 'kernels', arch, 'test-programs');
  mkdirSync(folder, { recursive: true });
  const compiler = arch === process.arch ? (process.env.CC ?? 'cc') : COMPILERS[arch];
  for (const [sources, suffix, flags] of [
    ['programs', '', ['-pthread']],
    ['preload', '.so', ['-shared', '-fPIC']],
  ]) {
    const from = join(REPOSITORY, 'test', sources);
    for (const source of readdirSync(from).filter((name) => name.endsWith('.c'))) {
      const target = join(folder, `${basename(source, '.c')}${suffix}`);
      // Another runner may compile the same file, so rename it when it is complete.
      const own = `${target}.${process.pid}`;
      execFileSync(compiler, ['-O1', ...flags, join(from, source), '-o', own]);
      renameSync(own, target);
    }
  }
  return folder;
}
