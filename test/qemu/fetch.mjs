// Prints the path of Debian's backport of QEMU. Fetches it first if it is missing: 13 MB, unpacked
// into a folder of their own. Nothing is installed. It uses the libraries of Debian's own QEMU. An
// existing copy stays as it is: remove the folder to get a newer one.
import { execFileSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { AptRoot } from '../kernels/apt.mjs';
import { cache } from '../kernels/folders.mjs';

const SUITE = 'bookworm-backports';

/**
 * The files of each package that a machine without a network needs. QEMU finds the rest beside
 * itself.
 */
const PARTS = {
  'qemu-system-x86': ['./usr/bin/qemu-system-x86_64'],
  'qemu-system-data': ['./usr/share/qemu/*'],
  seabios: ['./usr/share/seabios/*'],
};

const folder = join(cache('qemu'), SUITE);
const binary = join(folder, 'usr', 'bin', 'qemu-system-x86_64');

try {
  if (!existsSync(folder)) fetch();
  execFileSync(binary, ['-version'], { stdio: ['ignore', 'ignore', 'pipe'] });
  process.stdout.write(`${binary}\n`);
} catch (error) {
  process.stderr.write(`${String(error.stderr || error.message).trim()}\n`);
  process.exitCode = 1;
}

function fetch() {
  const partial = `${folder}.${process.pid}`;
  try {
    const suites = [`http://deb.debian.org/debian ${SUITE}`];
    const apt = new AptRoot(`qemu-${SUITE}`, { arch: 'x64', suites });
    for (const [name, patterns] of Object.entries(PARTS)) apt.extract(name, partial, patterns);
    if (!existsSync(folder)) renameSync(partial, folder); // unless another process was faster
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
