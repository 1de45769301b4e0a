// Compiles the addon into build/Release.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';

import { environmentWithHeaders } from './node-headers.mjs';

const nodeGyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
const env = { MAKEFLAGS: '-j2 --no-print-directory', ...environmentWithHeaders() };

for (const step of ['configure', 'build']) {
  const args = [nodeGyp, step, '--loglevel=warn', ...process.argv.slice(2)];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env });
  if (status !== 0) process.exit(status ?? 1);
}
