import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folders of a package, and of all that it depends on, as installed for a checkout. */
export function foldersOf(name, checkout) {
  const folders = new Set();
  const add = (folder) => {
    if (folder === undefined || folders.has(folder)) return;
    folders.add(folder);
    const { dependencies, optionalDependencies } = manifestOf(folder);
    for (const dependency of Object.keys({ ...dependencies, ...optionalDependencies }))
      add(find(dependency, folder, checkout));
  };
  add(find(name, checkout, checkout));
  return folders;
}

export function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

/** As Node.js finds it; undefined where it is not installed, as what is for other systems. */
function find(name, from, checkout) {
  for (let folder = from; folder.startsWith(checkout); folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
  }
  return undefined;
}
