// Compiles the addon. Node's headers are taken from beside this node where it has them, as Linux
// distributions install them; otherwise node-gyp downloads them.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const nodeGyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
const prefix = dirname(dirname(process.execPath));
const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
const isTold = process.env.npm_config_nodedir !== undefined;
const headers = hasHeaders && !isTold ? [`--nodedir=${prefix}`] : [];

for (const step of ['configure', 'build']) {
  const args = [nodeGyp, step, '--loglevel=warn', ...headers, ...process.argv.slice(2)];
  const { status } = spawnSync(process.execPath, args, {
    stdio: 'inherit',
    env: { ...process.env, MAKEFLAGS: process.env.MAKEFLAGS ?? '-j2 --no-print-directory' },
  });
  if (status !== 0) process.exit(status ?? 1);
}
