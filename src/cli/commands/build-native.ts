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
import { KEEPER_NAME } from '../../native/binary-places.js';
import { UsageError } from '../args/usage-error.js';
import { compileKeeper } from '../compile-keeper.js';
import { escapeText } from '../output/escape.js';
import { missingTools } from '../toolchain.js';

export const BUILD_NATIVE_HELP = `Compiles the native addon for this machine, if the package has no binary for it.

Usage: exitwatch build-native

  --help         prints this text

Requires a C++ compiler, make, Python 3 and npm, which downloads node-gyp and
node-addon-api. Exits with 0 if the new addon can be loaded, 1 otherwise.
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
  if (args.length > 0) throw new UsageError('build-native does not take arguments');
  if (process.platform !== 'linux') {
    process.stderr.write(
      `exitwatch: the native addon is for Linux only, not for ${process.platform}\n`,
    );
    return Promise.resolve(EXIT_NOT_BUILT);
  }
  const obstacle = whyNot();
  if (obstacle !== null) return Promise.resolve(fail(obstacle));
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-build-'));
  try {
    return Promise.resolve(build(folder) ? 0 : fail('the build failed: see the messages above'));
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
  if (missing !== null) return `cannot compile the addon; install ${missing}`;
  try {
    accessSync(ROOT, constants.W_OK);
    return null;
  } catch {
    return `the addon belongs in ${ROOT}, which this user cannot write`;
  }
}

function build(folder: string): boolean {
  cpSync(join(ROOT, 'native'), join(folder, 'native'), { recursive: true });
  writeFileSync(join(folder, 'binding.gyp'), "{'includes': ['native/exitwatch.gypi']}\n");
  writeFileSync(join(folder, 'package.json'), '{"private": true}\n');
  const gyp = join(folder, 'node_modules', 'node-gyp', 'bin', 'node-gyp.js');
  const target = join(ROOT, 'build', 'Release', 'exitwatch.node');
  say('downloading node-gyp and node-addon-api');
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
  say('compiling; this takes a minute or two');
  if (!run(folder, process.execPath, [gyp, 'rebuild', '--loglevel=warn'])) return false;
  const built = join(folder, 'build', 'Release', 'exitwatch.node');
  if (!run(folder, process.execPath, ['-e', `require(${JSON.stringify(built)})`])) return false;
  const keeper = join(folder, KEEPER_NAME);
  if (!compileKeeper(folder, keeper)) return false;
  install(built, target);
  // A keeper that runs from the old file goes on with that.
  install(keeper, join(dirname(target), KEEPER_NAME));
  process.stdout.write(`compiled and loaded ${target}\n`);
  return true;
}

function install(file: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(file, `${target}.new`);
  renameSync(`${target}.new`, target);
}

function run(folder: string, command: string, args: readonly string[]): boolean {
  const options = { cwd: folder, stdio: 'inherit', env: environment(folder) } as const;
  const { error, status } = spawnSync(command, args, options);
  if (error !== undefined) fail(`cannot run ${command}: ${reasonOf(error)}`);
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
