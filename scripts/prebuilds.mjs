// npm run prebuilds: compiles the addon and the keeper into prebuilds/, from which the published package loads it,
// for x64 and arm64 with Debian's compilers. Rejects a binary that requires a newer system than
// promised.
import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import keeper from '../dist/cli/compile-keeper.js';

import { environmentWithHeaders } from './node-headers.mjs';

const require = createRequire(import.meta.url);

/** RHEL 8, Debian 10, Ubuntu 18.10 and later. */
const MOST = { GLIBC: [2, 28], GLIBCXX: [3, 4, 21], CXXABI: [1, 3, 9] };

/** Prefixes of each target's tools. */
const TARGETS = { x64: 'x86_64-linux-gnu-', arm64: 'aarch64-linux-gnu-' };
TARGETS[process.arch] = '';

/** CI and a release require all targets. */
const wantsAll = process.env.CI || process.argv.includes('--all');

function compile(arch) {
  const prefix = TARGETS[arch];
  const args = [require.resolve('prebuildify/bin.js'), '--napi', '--quiet', '--arch', arch];
  const env = {
    JOBS: 'max', // node-gyp compiles with one processor otherwise
    ...environmentWithHeaders(),
    PREBUILD_NODE_GYP: require.resolve('node-gyp/bin/node-gyp.js'),
    GYP_DEFINES: 'portable=1',
    CC: `${prefix}gcc`,
    CXX: `${prefix}g++`,
  };
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env });
  if (status !== 0) process.exit(status ?? 1);
  const binary = join('prebuilds', `linux-${arch}`, 'exitwatch.node');
  execFileSync(`${prefix}strip`, [binary]);
  const program = join('prebuilds', `linux-${arch}`, 'exitwatch-keeper');
  if (!keeper.compileKeeper('.', program, { cc: `${prefix}gcc`, flags: ['-static', '-s'] }))
    process.exit(1);
  return binary;
}

/** The symbol versions that a binary requires and that are too new. */
function tooNew(binary, prefix) {
  const symbols = execFileSync(`${prefix}objdump`, ['-T', binary], { encoding: 'utf8' });
  const needed = new Set(symbols.match(/\b(GLIBC|GLIBCXX|CXXABI)_[\d.]+/g));
  return [...needed].filter((name) => {
    const [library, version] = name.split('_');
    const numbers = version.split('.').map(Number);
    const most = MOST[library];
    const at = most.findIndex((part, i) => (numbers[i] ?? 0) !== part);
    return at >= 0 && (numbers[at] ?? 0) > most[at];
  });
}

rmSync('prebuilds', { recursive: true, force: true });
for (const [arch, prefix] of Object.entries(TARGETS)) {
  if (!wantsAll && spawnSync(`${prefix}g++`, ['--version']).error !== undefined) {
    console.warn(`prebuilds/linux-${arch}: skipped, because ${prefix}g++ is not installed`);
    continue;
  }
  const binary = compile(arch);
  const refused = tooNew(binary, prefix);
  if (refused.length > 0) {
    console.error(`${binary} requires ${refused.join(', ')}, which systems from 2018 lack`);
    process.exit(1);
  }
  console.log(`${binary}: compiled`);
}
