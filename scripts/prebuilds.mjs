// npm run prebuilds: compiles the addon and the keeper into prebuilds/, from which the published package loads it,
// for x64 and arm64 with Debian's compilers. Rejects a binary that requires a newer system than
// promised.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { PREFIXES } from './cross-compilers.mjs';
import { compileKeeper } from './toolchain.mjs';

/** RHEL 8, Debian 10, Ubuntu 18.10 and later. */
const MOST = { GLIBC: [2, 28], GLIBCXX: [3, 4, 21], CXXABI: [1, 3, 9] };

/** Prefixes of each target's tools. */
const TARGETS = { ...PREFIXES, [process.arch]: '' };

/** CI and a release require all targets. */
const wantsAll = process.env.CI || process.argv.includes('--all');

function compile(arch) {
  const prefix = TARGETS[arch];
  const part = arch === process.arch ? 'addon' : `addon-${arch}`;
  execFileSync(process.execPath, [join('scripts', 'build.mjs'), part], { stdio: 'inherit' });
  const folder = join('prebuilds', `linux-${arch}`);
  mkdirSync(folder, { recursive: true });
  const binary = join(folder, 'exitwatch.node');
  cpSync(join('build', arch === process.arch ? 'Release' : arch, 'exitwatch.node'), binary);
  execFileSync(`${prefix}strip`, [binary]);
  const program = join(folder, 'exitwatch-keeper');
  const flags = ['-static', '-s'];
  if (!compileKeeper('.', program, { cc: `${prefix}gcc`, flags })) process.exit(1);
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
