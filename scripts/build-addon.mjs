// Compiles the addon into build/Release. Arguments are for node-gyp configure.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';

import { environmentWithHeaders } from './node-headers.mjs';

const nodeGyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
const env = { MAKEFLAGS: '-j2 --no-print-directory', ...environmentWithHeaders() };

for (const step of [['configure', ...process.argv.slice(2)], ['build']]) {
  const args = [nodeGyp, '--loglevel=warn', ...step];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env });
  if (status !== 0) process.exit(status ?? 1);
}
