// Jest and the compiled tests for guests.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';

import { fetchPackage } from './node-binary.mjs';
import { foldersOf, manifestOf } from './node-modules.mjs';

const ts = createRequire(import.meta.url)('typescript');

/** Adds them to an initramfs. */
export function addJest(initramfs, { arch, repository }) {
  for (const folder of foldersOf('jest', repository)) {
    const path = join('/exitwatch', relative(repository, folder));
    initramfs.copy(folder, path, isWanted);
    // npm installs native modules for the host only.
    if (manifestOf(folder).name === 'unrs-resolver' && arch !== process.arch) {
      const name = `@unrs/resolver-binding-linux-${arch}-gnu`;
      const version = manifestOf(folder).optionalDependencies[name];
      initramfs.copy(fetchPackage(`${name}@${version}`), join(path, 'node_modules', name));
    }
  }
  const folder = join(repository, 'test');
  for (const name of scriptsIn(folder)) {
    const path = join('/exitwatch/test', name.replace(/\.ts$/, '.js'));
    initramfs.file(path, transpile(readFileSync(join(folder, name), 'utf8')));
  }
  initramfs.copy(join(folder, 'programs'), '/exitwatch/test/programs');
  // The tests run against the built package.
  initramfs.link('/exitwatch/src', 'dist');
}

const isWanted = (path) => !/\.(map|md|[cm]?ts)$|\/node_modules$|\/esm$/.test(path);

const scriptsIn = (folder) =>
  readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.ts'));

function transpile(source) {
  const { CommonJS } = ts.ModuleKind;
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: CommonJS };
  return ts.transpileModule(source, { compilerOptions }).outputText;
}
