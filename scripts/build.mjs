// npm run build [-- dist | addon | keeper | addon-arm64]…: compiles src/ into dist/, and native/ into build/Release, side by
// side. What was compiled before from the same sources, in the same way, is taken from the folder that
// EXITWATCH_BUILDS names, or build/builds. `build.mjs start` is for npm start: it says why that fails.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { PREFIXES } from './cross-compilers.mjs';
import { missingTools } from './toolchain.mjs';

const BUILDS = process.env.EXITWATCH_BUILDS ?? join('build', 'builds');
const STAMPS = join('build', 'stamps');
const VARIABLES = ['CC', 'CXX', 'CFLAGS', 'CXXFLAGS', 'LDFLAGS', 'npm_config_nodedir'];

/** How many builds of each part are kept. */
const MOST_KEPT = 5;

const TSC = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];

const ADDON_SOURCES = ['binding.gyp', 'native', 'node_modules/node-addon-api/package.json'];

/** Another checkout may be built with these scripts. */
const script = (name) => join(import.meta.dirname, name);

/** What is made, from what, and how. */
const PARTS = [
  {
    name: 'dist',
    target: 'dist',
    sources: [
      'src',
      'tsconfig.json',
      'tsconfig.build.json',
      'node_modules/typescript/package.json',
    ],
    make: () => run(...TSC),
  },
  {
    name: 'addon',
    target: join('build', 'Release', 'exitwatch.node'),
    sources: ADDON_SOURCES,
    make: () => run(script('build-addon.mjs')),
  },
  {
    name: 'keeper',
    target: join('build', 'Release', 'exitwatch-keeper'),
    sources: ['native/keeper', 'src/cli/compile-keeper.ts', 'src/native/package-version.ts'],
    make: () => run(script('build-keeper.mjs')),
    isForLinux: true,
  },
  ...Object.keys(PREFIXES).map((arch) => ({
    name: `addon-${arch}`,
    target: join('build', arch, 'exitwatch.node'),
    sources: ADDON_SOURCES,
    make: () => run(script('build-addon.mjs'), '--arch', arch),
    isExtra: true,
  })),
];

const words = process.argv.slice(2);
const wanted = PARTS.filter(({ name }) => words.includes(name));
const stale = (wanted.length > 0 ? wanted : PARTS.filter(({ isExtra }) => isExtra !== true))
  .filter(({ isForLinux }) => isForLinux !== true || process.platform === 'linux')
  .map((part) => ({ ...part, hash: hashOf(part) }))
  .filter((part) => !isThere(part) && !isTaken(part));
if (stale.length > 0) {
  console.error('exitwatch: building; the first time, this takes a minute or two');
  const isGood = hasTools() && !(await Promise.all(stale.map(make))).includes(false);
  if (!isGood && words.includes('start'))
    console.error('exitwatch: cannot start, because the build failed');
  process.exitCode = isGood ? 0 : 1;
}
// Jest compares them with the times of the sources: see test/support/global-setup.ts.
const now = new Date();
for (const file of existsSync('dist') ? filesOf('dist') : []) utimesSync(file, now, now);

function hasTools() {
  if (stale.every(({ name }) => name === 'dist')) return true;
  const missing = missingTools();
  if (missing !== null) console.error(`exitwatch: cannot build the addon; install ${missing}`);
  return missing === null;
}

function hashOf({ sources }) {
  const hash = createHash('sha256').update(`${process.version} ${process.arch}`);
  for (const name of VARIABLES) hash.update(`\0${name}=${process.env[name] ?? ''}`);
  for (const file of sources.flatMap(filesOf)) {
    hash.update(`\0${file}\0`).update(readFileSync(file));
  }
  return hash.digest('hex').slice(0, 32);
}

function filesOf(path) {
  if (statSync(path).isFile()) return [path];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

function isThere({ name, target, hash }) {
  const stamp = join(STAMPS, name);
  return existsSync(target) && existsSync(stamp) && readFileSync(stamp, 'utf8') === hash;
}

function isTaken(part) {
  const kept = join(BUILDS, `${part.name}-${part.hash}`);
  if (!existsSync(kept)) return false;
  clear(part);
  copy(kept, part.target);
  stamp(part);
  return true;
}

async function make(part) {
  clear(part);
  if (!(await part.make())) return false;
  stamp(part);
  keep(part);
  return true;
}

function run(...args) {
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  return new Promise((resolve) => child.once('close', (code) => resolve(code === 0)));
}

/** Also removes what a folder has of sources that are gone. */
function clear({ name, target }) {
  rmSync(join(STAMPS, name), { force: true });
  rmSync(target, { recursive: true, force: true });
}

function stamp({ name, hash }) {
  mkdirSync(STAMPS, { recursive: true });
  writeFileSync(join(STAMPS, name), hash);
}

/** Complete or not at all: others may take it meanwhile. */
function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  const fresh = `${to}.${process.pid}`;
  cpSync(from, fresh, { recursive: true });
  if (existsSync(to)) rmSync(fresh, { recursive: true });
  else renameSync(fresh, to);
}

/** For others that build the same; their folder may be somebody else's. */
function keep(part) {
  try {
    copy(part.target, join(BUILDS, `${part.name}-${part.hash}`));
    prune(part);
  } catch (error) {
    if (error.code !== 'EACCES') throw error;
  }
}

function prune({ name }) {
  const kept = readdirSync(BUILDS).filter((entry) => entry.startsWith(`${name}-`));
  const age = (entry) => statSync(join(BUILDS, entry), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  for (const entry of kept.sort((a, b) => age(b) - age(a)).slice(MOST_KEPT)) {
    rmSync(join(BUILDS, entry), { recursive: true, force: true });
  }
}
