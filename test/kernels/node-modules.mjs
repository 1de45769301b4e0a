import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folders of a package and of all its dependencies, as installed in a checkout. */
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

/**
 * Finds a package as Node.js does. Returns undefined if it is not installed, for example because it
 * is for another system.
 */
function find(name, from, checkout) {
  for (let folder = from; folder.startsWith(checkout); folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
  }
  return undefined;
}
