import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { reasonOf } from '../../common/errors.js';
import { UsageError } from '../args/usage-error.js';
import { escapeText } from '../output/escape.js';
import { missingTools } from '../toolchain.js';

export const BUILD_NATIVE_HELP = `Compiles the native addon for this machine, where no binary that came along can be used.

Usage: exitwatch build-native

  --help         this text

Takes a C++ compiler, make, Python 3 and npm, which fetches node-gyp and node-addon-api. Ends
with 0 when the addon was loaded, 1 otherwise.
`;

const ROOT = join(__dirname, '..', '..', '..');

/**
 * The packages that compile the addon. They are not dependencies, because most users need not
 * compile.
 */
const TOOLS = ['node-gyp@^12.4.0', 'node-addon-api@^8.9.2'];

const EXIT_NOT_BUILT = 1;

/** `exitwatch build-native`; resolves with the exit code. */
export function buildNativeCommand(args: readonly string[]): Promise<number> {
  if (args.length > 0) throw new UsageError('build-native takes no arguments');
  if (process.platform !== 'linux') {
    process.stderr.write(`exitwatch: there is nothing to compile for ${process.platform}\n`);
    return Promise.resolve(EXIT_NOT_BUILT);
  }
  const obstacle = whyNot();
  if (obstacle !== null) return Promise.resolve(fail(obstacle));
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-build-'));
  try {
    return Promise.resolve(build(folder) ? 0 : fail('nothing was compiled: see above'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function fail(why: string): number {
  process.stderr.write(`exitwatch: ${escapeText(why)}\n`);
  return EXIT_NOT_BUILT;
}

/** What prevents compiling, as far as it can be found out before spending a minute on it. */
function whyNot(): string | null {
  const missing = missingTools();
  if (missing.length > 0) return `it cannot be compiled without ${missing.join(', ')}: install it`;
  try {
    accessSync(ROOT, constants.W_OK);
    return null;
  } catch {
    return `${ROOT} cannot be written by this user, and the addon belongs there`;
  }
}

function build(folder: string): boolean {
  cpSync(join(ROOT, 'native'), join(folder, 'native'), { recursive: true });
  writeFileSync(join(folder, 'binding.gyp'), "{'includes': ['native/exitwatch.gypi']}\n");
  writeFileSync(join(folder, 'package.json'), '{"private": true}\n');
  const gyp = join(folder, 'node_modules', 'node-gyp', 'bin', 'node-gyp.js');
  const target = join(ROOT, 'build', 'Release', 'exitwatch.node');
  say('fetching node-gyp and node-addon-api');
  if (
    !run(folder, 'npm', [
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
      ...TOOLS,
    ])
  ) {
    return false;
  }
  say('compiling, which takes a minute or two');
  if (!run(folder, process.execPath, [gyp, 'rebuild', '--loglevel=warn'])) return false;
  const built = join(folder, 'build', 'Release', 'exitwatch.node');
  if (!run(folder, process.execPath, ['-e', `require(${JSON.stringify(built)})`])) return false;
  mkdirSync(dirname(target), { recursive: true });
  cpSync(built, `${target}.new`);
  renameSync(`${target}.new`, target);
  process.stdout.write(`${target} was compiled, and can be loaded\n`);
  return true;
}

function run(folder: string, command: string, args: readonly string[]): boolean {
  const options = { cwd: folder, stdio: 'inherit', env: environment(folder) } as const;
  const { error, status } = spawnSync(command, args, options);
  if (error !== undefined) fail(`${command} cannot be run: ${reasonOf(error)}`);
  return status === 0;
}

/** Uses Node's headers if they are installed next to it; otherwise node-gyp downloads them. */
function environment(folder: string): NodeJS.ProcessEnv {
  const prefix = dirname(dirname(process.execPath));
  const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
  const nodedir = hasHeaders ? { npm_config_nodedir: prefix } : {};
  // npm and node-gyp store downloads in HOME. Without one they fail, and do not say why.
  const home = hasHome() ? {} : { HOME: folder };
  // node-gyp compiles with one processor otherwise.
  return { JOBS: 'max', ...nodedir, ...process.env, ...home };
}

function hasHome(): boolean {
  try {
    accessSync(homedir(), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function say(what: string): void {
  process.stderr.write(`exitwatch: ${what}\n`);
}
