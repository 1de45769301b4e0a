import { fork } from 'node:child_process';
import { lstat, readFile } from 'node:fs/promises';
import { dirname, extname, join, resolve } from 'node:path';

import { LATE, withDeadline } from '../../common/deadline.js';
import { ExitwatchError, reasonOf } from '../../common/errors.js';

import { machineFolders } from '../machines/machine-spec.js';

import { checkConfig, type Config, ConfigFault, type Defaults } from './check-config.js';
import { configError, keyIn, lineOf } from './config-error.js';
import { placesIn } from './json-places.js';
import type { ModuleAnswer } from './read-module.js';

const MOST_BYTES = 4_000_000;
const LONGEST_MODULE_MS = 30_000;
/** How long a disk may take to say what a file is. */
const LONGEST_LOOK_MS = 2000;
const MODULES: readonly string[] = ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts'];

/**
 * Reads a configuration: JSON, or a module whose default export is one, or a function that returns one.
 * A module is evaluated anew each time, in a process of its own.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_CONFIG`, which names the line and the key.
 *
 * @param superviseFolder of the supervisor
 */
export async function loadConfig(file: string, superviseFolder: string): Promise<Config> {
  const path = resolve(file);
  const defaults: Defaults = {
    folder: dirname(path),
    logs: join(superviseFolder, 'logs'),
    machines: machineFolders(superviseFolder),
    exitwatch: [process.execPath, join(__dirname, '..', '..', 'cli', 'main.js')],
  };
  const config = await (MODULES.includes(extname(path))
    ? loadModule(path, defaults)
    : loadJson(path, defaults));
  await checkLogFiles(path, config);
  return config;
}

async function loadJson(path: string, defaults: Defaults): Promise<Config> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw configError(path, null, reasonOf(error), error);
  }
  return parseConfig(text, path, defaults);
}

/** A keeper writes to regular files only: what it cannot write would keep the service waiting. */
async function checkLogFiles(path: string, { services }: Config): Promise<void> {
  for (const { name, logs = {} } of services) {
    for (const option of ['file', 'stdout', 'stderr'] as const) {
      const file = logs[option];
      if (file === undefined) continue;
      // What is not there is made; of what cannot be seen now a start will tell.
      const status = await withDeadline(lstat(file), LONGEST_LOOK_MS).catch(() => null);
      if (status === null || status === LATE || status.isFile()) continue;
      const what = status.isSymbolicLink() ? 'a symbolic link' : 'no regular file';
      const detail = `service ${JSON.stringify(name)}: logs.${option} must be a regular file, and ${file} is ${what}`;
      throw configError(path, null, detail);
    }
  }
}

/** @throws ExitwatchError `ERR_EXITWATCH_CONFIG` */
export function parseConfig(text: string, path: string, defaults: Defaults): Config {
  if (text.length > MOST_BYTES) {
    throw configError(path, null, `it has more than ${MOST_BYTES} characters`);
  }
  const places = placesIn(text);
  const { fault, twice } = places;
  if (fault !== null) {
    const { line, column, expected } = fault;
    throw configError(path, line, `it is no JSON: ${expected} is expected in column ${column}`);
  }
  if (twice !== null) throw configError(path, lineOf(places, twice), `${twice} is there twice`);
  try {
    return checkConfig(JSON.parse(text), defaults);
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error;
    const key = keyIn(error.message, error.part, places.lines);
    const where = key === '' ? '' : `${key}: `;
    throw configError(path, lineOf(places, key), `${where}${error.message}`, error.cause);
  }
}

async function loadModule(path: string, defaults: Defaults): Promise<Config> {
  const value = await evaluateModule(path);
  try {
    return checkConfig(value, defaults);
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error;
    const whole = Array.isArray(value) ? { services: value as unknown[] } : value;
    const key = keyIn(error.message, error.part, { has: (each) => hasKey(whole, each) });
    throw configError(path, null, `${key === '' ? '' : `${key}: `}${error.message}`, error.cause);
  }
}

/** @param key such as `services[0].stop.graceMs` */
function hasKey(value: unknown, key: string): boolean {
  let at: unknown = value;
  for (const [, name = '', index] of key.matchAll(/\.?([^.[\]]+)|\[(\d+)\]/g)) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, index ?? name)) return false;
    at = (at as Record<string, unknown>)[index ?? name];
  }
  return true;
}

/**
 * What a module exports by default, or what its function returns.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_CONFIG`.
 */
export async function evaluateModule(path: string): Promise<unknown> {
  const answer = await new Promise<ModuleAnswer>((done, reject) => {
    const child = fork(join(__dirname, 'read-module.js'), [path], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [],
      timeout: LONGEST_MODULE_MS,
      killSignal: 'SIGKILL',
    });
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(0, 4000);
    });
    let found: ModuleAnswer | undefined;
    child.once('message', (message) => {
      found = message as ModuleAnswer;
    });
    child.once('error', (error) => {
      reject(configError(path, null, reasonOf(error), error));
    });
    child.once('close', (code, signal) => {
      if (found !== undefined) done(found);
      else reject(configError(path, null, said.trim() || `it ended with ${signal ?? code}`));
    });
  });
  if ('fault' in answer) throw configError(path, null, answer.fault);
  return JSON.parse(answer.json);
}

/** Whether a configuration cannot be used, as opposed to a failure of the system. */
export function isConfigError(error: unknown): error is ExitwatchError {
  return error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_CONFIG';
}
