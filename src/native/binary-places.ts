import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Bundlers put the manifest itself here: it is always the one of this code. */
const OWN = require('../../package.json') as Manifest;

interface Manifest {
  name: string;
  version: string;
}

/** What became of a place, for people. */
export type Tried = { path: string; failure: string };

export interface BinaryPlaces {
  /** This code was put into another program's file, and is not where its package is. */
  isBundled: boolean;
  /** Where a binary may be, the best first. */
  paths: string[];
  /** What was looked for and cannot be used. */
  tried: Tried[];
}

const NAME = 'exitwatch.node';
const SHIPPED = join('prebuilds', `${process.platform}-${process.arch}`, NAME);

/** In a package; what was built here is for this machine. */
const IN_PACKAGE = [join('build', 'Release', NAME), join('build', 'Debug', NAME), SHIPPED];

/**
 * Our package; from a bundle, what was copied beside it or one folder above it, and then the package
 * that is installed where the bundle runs. The working directory is nobody's place.
 */
export function binaryPlaces(): BinaryPlaces {
  const folders = ownFolders();
  const root = folders.map((folder) => join(folder, '..', '..')).find(isOurs);
  if (root !== undefined) {
    return { isBundled: false, paths: IN_PACKAGE.map((file) => join(root, file)), tried: [] };
  }
  const paths: string[] = [];
  const tried: Tried[] = [];
  for (const folder of folders) {
    paths.push(join(folder, SHIPPED), join(folder, '..', SHIPPED));
    const installed = installedRoot(folder);
    if (installed === null) {
      tried.push({ path: 'exitwatch/package.json', failure: `cannot be resolved from ${folder}` });
    } else if (isOurs(installed)) {
      paths.push(...IN_PACKAGE.map((file) => join(installed, file)));
    } else {
      tried.push({ path: installed, failure: `is not exitwatch ${OWN.version}, as in the bundle` });
    }
  }
  if (folders.length === 0) {
    tried.push({ path: 'the bundle', failure: 'does not know the folder that it is in' });
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

/** Bundlers leave `__dirname` out, or make up another one, and then the stack tells it. */
function ownFolders(): string[] {
  const file = ownFile();
  const path = file.startsWith('file:') ? fileURLToPath(file) : file;
  const folders = [typeof __dirname === 'string' ? __dirname : '', dirname(path)];
  return [...new Set(folders.filter((folder) => isAbsolute(folder)))];
}

/** The file that this function is in, as a path or a URL; empty where that is not known. */
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
    // --frozen-intrinsics lets nobody ask.
    return '';
  } finally {
    try {
      Object.assign(Error, { prepareStackTrace, stackTraceLimit });
    } catch {
      // Then nothing was changed.
    }
  }
}
