import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { environmentWithHeaders } from '../../scripts/node-headers.mjs';
import { REPOSITORY } from './folders.mjs';

const PREFIXES = { arm64: 'aarch64-linux-gnu-', x64: 'x86_64-linux-gnu-' };

/** Compiles a checkout's addon for another architecture outside its build/. Returns its bytes. */
export function compileForeignAddon(arch, checkout) {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-addon-'));
  try {
    for (const name of ['binding.gyp', 'native', 'package.json'])
      cpSync(join(checkout, name), join(folder, name), { recursive: true });
    symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
    const nodeGyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
    const env = {
      ...{ MAKEFLAGS: '-j2 --no-print-directory', ...environmentWithHeaders() },
      ...{ CC: `${PREFIXES[arch]}gcc`, CXX: `${PREFIXES[arch]}g++` },
    };
    for (const step of ['configure', 'build'])
      execFileSync(process.execPath, [nodeGyp, '--loglevel=warn', step, `--arch=${arch}`], {
        ...{ cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] },
      });
    return readFileSync(join(folder, 'build', 'Release', 'exitwatch.node'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
