import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';

import loadBinding = require('bindings');

/** The root of the package. */
const ROOT = join(__dirname, '..');

/** Where a binary may be, the best first: what was built here is for this machine. */
const FOLDERS = [
  ['build', 'Release'],
  ['build', 'Debug'],
  ['prebuilds', `${process.platform}-${process.arch}`],
];

const NAME = 'exitwatch.node';

type Libc = 'glibc' | 'musl';

/** What became of each place, for people. */
export type Tried = { path: string; failure: string };

/**
 * Loads the first binary that `isUsable` takes. A binary for another C library is not even tried: that
 * can crash the process.
 */
export function loadNativeBinary(isUsable: (binary: unknown) => boolean): {
  binary?: unknown;
  tried: Tried[];
} {
  const tried: Tried[] = [];
  for (const folder of FOLDERS) {
    const path = join(ROOT, ...folder, NAME);
    try {
      const failure = refusalOf(path);
      if (failure === null) {
        const places = [['module_root', ...folder, 'bindings']];
        const binary: unknown = loadBinding({ bindings: NAME, module_root: ROOT, try: places });
        if (isUsable(binary)) return { binary, tried };
        tried.push({ path, failure: 'is of another version of exitwatch' });
      } else {
        tried.push({ path, failure });
      }
    } catch (error) {
      const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
      tried.push({ path, failure: line });
    }
  }
  return { tried };
}

function refusalOf(path: string): string | null {
  if (!existsSync(path)) return 'is not there';
  const wanted = libcOfBinary(readFileSync(path));
  const ours = libcOfProgram('/proc/self/exe');
  if (wanted === null || ours === null || wanted === ours) return null;
  return `is for ${wanted}, and this Node.js is for ${ours}`;
}

/** The C library that a shared object needs by name; `null` where it needs neither. @internal */
export function libcOfBinary(bytes: Buffer): Libc | null {
  if (bytes.includes('\0libc.so.6\0')) return 'glibc';
  return bytes.includes('\0libc.musl-') || bytes.includes('\0libc.so\0') ? 'musl' : null;
}

/** By the dynamic linker that the program asks for; `null` where it asks for none that is known. */
function libcOfProgram(path: string): Libc | null {
  const bytes = Buffer.alloc(64 * 1024);
  try {
    const file = openSync(path, 'r');
    readSync(file, bytes, 0, bytes.length, 0);
    closeSync(file);
  } catch {
    return null;
  }
  if (/\/ld-musl-[\w-]+\.so/.test(bytes.toString('latin1'))) return 'musl';
  return /\/ld-linux[\w-]*\.so/.test(bytes.toString('latin1')) ? 'glibc' : null;
}
