// Compiles the addon into prebuilds/, from where the published package loads it.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';

import { environmentWithHeaders } from './node-headers.mjs';

const require = createRequire(import.meta.url);
const args = [require.resolve('prebuildify/bin.js'), '--napi', '--strip', '--quiet'];
const env = {
  PREBUILD_NODE_GYP: require.resolve('node-gyp/bin/node-gyp.js'),
  ...environmentWithHeaders(),
};
process.exit(spawnSync(process.execPath, args, { stdio: 'inherit', env }).status ?? 1);
