import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { AptRoot } from './apt.mjs';
import { cacheFolder } from './folders.mjs';
import { DEBIAN_ARCH, KERNELS } from './kernels.mjs';

/** The package with this prefix that a package depends on in the same version. */
function partOf({ Depends = '' }, prefix) {
  return Depends.split(', ')
    .find((dependency) => dependency.startsWith(prefix))
    ?.split(' ')[0];
}

/** The newest kernel of that name: its file and its Debian version. Downloads what is missing. */
export function fetchKernel(name) {
  const { arch, suites } = KERNELS[name];
  const apt = new AptRoot(name, { arch, suites });
  const image = apt.show(partOf(apt.show(`linux-image-${DEBIAN_ARCH[arch]}`), 'linux-image-'));
  // From Linux 7 on the kernel image is in a package of its own.
  const holder = partOf(image, 'linux-binary-') ?? image.Package;
  const folder = join(cacheFolder('images'), `${holder}_${image.Version}`);
  if (!existsSync(folder)) {
    const partial = `${folder}.${process.pid}`;
    apt.extract(holder, partial, ['*/vmlinuz*']);
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
  }
  const file = readdirSync(folder, { recursive: true }).find((entry) =>
    /\/vmlinuz[^/]*$/.test(entry),
  );
  return { arch, version: image.Version, file: join(folder, file) };
}
