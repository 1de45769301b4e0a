import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Bundlers inline the manifest, so it is always the one of this code. */
const OWN = require('../../package.json') as Manifest;

interface Manifest {
  name: string;
  version: string;
}

/** Why a place could not be used, as text for a message. */
export type Tried = { path: string; failure: string };

export interface BinaryPlaces {
  /** This code was bundled into another program, away from its package. */
  isBundled: boolean;
  /** Where a binary may be, the best place first. */
  paths: string[];
  /** Places that cannot be used. */
  tried: Tried[];
}

const ADDON_NAME = 'exitwatch.node';

/** The program that keeps processes. */
export const KEEPER_NAME = 'exitwatch-keeper';

/** What it exits with if somebody else has a lock; native/keeper/main.c. */
export const KEEPER_IN_USE = 75;

const shipped = (name: string) => join('prebuilds', `${process.platform}-${process.arch}`, name);

/** Within a package; a binary built on this machine comes first. */
const inPackage = (name: string) => [
  join('build', 'Release', name),
  join('build', 'Debug', name),
  shipped(name),
];

/** The first of the places where a file with this name is; and why others cannot be used. */
export function usableFile(name: string): { path: string | null; tried: Tried[] } {
  const { paths, tried } = binaryPlaces(name);
  const path = paths.find((each) => existsSync(each)) ?? null;
  const missing = paths.map((each) => ({ path: each, failure: 'does not exist' }));
  return { path, tried: path === null ? [...missing, ...tried] : [] };
}

/**
 * Our package. From a bundle: next to the bundle or one folder above it, then the installed
 * package. The working directory is never searched.
 */
export function binaryPlaces(name = ADDON_NAME): BinaryPlaces {
  const folders = ownFolders();
  const root = folders.map((folder) => join(folder, '..', '..')).find(isOurs);
  if (root !== undefined) {
    return { isBundled: false, paths: inPackage(name).map((file) => join(root, file)), tried: [] };
  }
  const paths: string[] = [];
  const tried: Tried[] = [];
  for (const folder of folders) {
    paths.push(join(folder, shipped(name)), join(folder, '..', shipped(name)));
    const installed = installedRoot(folder);
    if (installed === null) {
      tried.push({ path: 'exitwatch/package.json', failure: `cannot be resolved from ${folder}` });
    } else if (isOurs(installed)) {
      paths.push(...inPackage(name).map((file) => join(installed, file)));
    } else {
      tried.push({
        path: installed,
        failure: `is not exitwatch ${OWN.version}, the version in the bundle`,
      });
    }
  }
  if (folders.length === 0) {
    tried.push({ path: 'the bundle', failure: 'cannot find out which folder it is in' });
  }
  return { isBundled: true, paths: [...new Set(paths)], tried };
}

function isOurs(root: string): boolean {
  try {
    const text = readFileSync(join(root, 'package.json'), 'utf8');
    const { name, version } = JSON.parse(text) as Partial<Manifest>;
    return name === OWN.name && version === OWN.version;
  } catch {
    return false;
  }
}

function installedRoot(folder: string): string | null {
  try {
    const require = createRequire(join(folder, 'bundle.js'));
    return dirname(require.resolve('exitwatch/package.json'));
  } catch {
    return null;
  }
}

/** Bundlers drop `__dirname` or invent another one; the stack shows the real file. */
function ownFolders(): string[] {
  const file = ownFile();
  const path = file.startsWith('file:') ? fileURLToPath(file) : file;
  const folders = [typeof __dirname === 'string' ? __dirname : '', dirname(path)];
  return [...new Set(folders.filter((folder) => isAbsolute(folder)))];
}

/** The file of this function, as a path or URL; empty if unknown. */
function ownFile(): string {
  const { stackTraceLimit } = Error;
  const prepareStackTrace: unknown = Reflect.get(Error, 'prepareStackTrace');
  try {
    let file = '';
    Error.stackTraceLimit = 1;
    Error.prepareStackTrace = (_, [site]) => (file = site?.getFileName() ?? '');
    const { stack } = new Error();
    return stack === undefined ? '' : file;
  } catch {
    // --frozen-intrinsics forbids this.
    return '';
  } finally {
    try {
      Object.assign(Error, { prepareStackTrace, stackTraceLimit });
    } catch {
      // Nothing was changed.
    }
  }
}
