import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { basename, dirname } from 'node:path';

import { type Tried, binaryPlaces } from './binary-places.js';

import loadBinding = require('bindings');

type Libc = 'glibc' | 'musl';

/**
 * Loads the first binary that `isUsable` accepts. A binary for another C library is not even tried,
 * because loading it can crash the process.
 */
export function loadNativeBinary(isUsable: (binary: unknown) => boolean): {
  binary?: unknown;
  tried: Tried[];
  isBundled: boolean;
} {
  const { paths, tried: lacking, isBundled } = binaryPlaces();
  const tried: Tried[] = [];
  for (const path of paths) {
    try {
      const failure = refusalOf(path);
      if (failure === null) {
        const binary = load(path);
        if (isUsable(binary)) return { binary, tried, isBundled };
        tried.push({ path, failure: 'belongs to another version of exitwatch' });
      } else {
        tried.push({ path, failure });
      }
    } catch (error) {
      const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
      tried.push({ path, failure: line });
    }
  }
  return { tried: [...tried, ...lacking], isBundled };
}

function load(path: string): unknown {
  const places = [['module_root', 'bindings']];
  return loadBinding({ bindings: basename(path), module_root: dirname(path), try: places });
}

function refusalOf(path: string): string | null {
  if (!existsSync(path)) return 'does not exist';
  const wanted = libcOfBinary(readFileSync(path));
  const ours = libcOfProgram('/proc/self/exe');
  if (wanted === null || ours === null || wanted === ours) return null;
  return `is for ${wanted}, but this Node.js is for ${ours}`;
}

/** The C library that a shared object needs; `null` if it names neither. @internal */
export function libcOfBinary(bytes: Buffer): Libc | null {
  if (bytes.includes('\0libc.so.6\0')) return 'glibc';
  return bytes.includes('\0libc.musl-') || bytes.includes('\0libc.so\0') ? 'musl' : null;
}

/** Judged by the program's dynamic linker; `null` if that is unknown. */
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
