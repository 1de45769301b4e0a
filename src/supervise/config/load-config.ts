import { fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, extname, join, resolve } from 'node:path';

import { ExitwatchError, reasonOf } from '../../common/errors.js';

import { machineFolders } from '../machines/machine-spec.js';

import { checkConfig, type Config, ConfigFault, type Defaults } from './check-config.js';
import { configError, keyIn, lineOf } from './config-error.js';
import { placesIn } from './json-places.js';
import type { ModuleAnswer } from './read-module.js';

const MOST_BYTES = 4_000_000;
const LONGEST_MODULE_MS = 30_000;
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
  if (MODULES.includes(extname(path))) return loadModule(path, defaults);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw configError(path, null, reasonOf(error), error);
  }
  return parseConfig(text, path, defaults);
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
