// Compiles the addon into build/Release. Arguments are for node-gyp configure.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';

import toolchain from '../dist/cli/toolchain.js';

import { environmentWithHeaders } from './node-headers.mjs';

function fail(why) {
  console.error(`exitwatch: ${why}`);
  process.exit(1);
}

const missing = toolchain.missingTools();
if (missing !== null) {
  fail(`cannot build the addon; install ${missing}`);
}
const env = { MAKEFLAGS: '-j2 --no-print-directory', ...environmentWithHeaders() };
const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');

for (const step of [['configure', ...process.argv.slice(2)], ['build']]) {
  const args = [gyp, '--loglevel=warn', ...step];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env });
  if (status !== 0) fail(`the build failed at node-gyp ${step[0]}`);
}
