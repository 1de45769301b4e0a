// Compiles the addon into build/Release, or, with --arch and Debian's compilers for it, into build/ARCH. Other
// arguments are for node-gyp configure, instead of what makes a binary for old systems, too.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { PREFIXES } from './cross-compilers.mjs';
import { environmentWithHeaders } from './node-headers.mjs';
import { missingTools } from './toolchain.mjs';

function fail(why) {
  console.error(`exitwatch: ${why}`);
  process.exit(1);
}

const missing = missingTools();
if (missing !== null) {
  fail(`cannot build the addon; install ${missing}`);
}
const arch = process.argv[2] === '--arch' ? process.argv[3] : process.arch;
const others = process.argv.slice(process.argv[2] === '--arch' ? 4 : 2);
const options = others.length > 0 ? others : ['--', `-Dportable=${arch in PREFIXES ? 1 : 0}`];

const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
const env = { MAKEFLAGS: '-j2 --no-print-directory', ...environmentWithHeaders() };
if (arch === process.arch) {
  build('.');
} else {
  env.CC = `${PREFIXES[arch]}gcc`;
  env.CXX = `${PREFIXES[arch]}g++`;
  const folder = mkdtempSync(join(tmpdir(), 'ew-addon-'));
  for (const name of ['binding.gyp', 'native', 'package.json'])
    cpSync(name, join(folder, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  build(folder);
  mkdirSync(join('build', arch), { recursive: true });
  const name = 'exitwatch.node';
  cpSync(join(folder, 'build', 'Release', name), join('build', arch, name));
  rmSync(folder, { recursive: true });
}

function build(cwd) {
  for (const step of [['configure', `--arch=${arch}`, ...options], ['build']]) {
    const args = [gyp, '--loglevel=warn', ...step];
    const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env, cwd });
    if (status !== 0) fail(`the build failed at node-gyp ${step[0]}`);
  }
}
