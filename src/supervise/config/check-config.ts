import { join, resolve } from 'node:path';

import { ExitwatchError } from '../../common/errors.js';
import { isObject } from '../../common/is-object.js';
import { checkBoolean, checkOneOf, invalidOption } from '../../common/options.js';
import type { ConfiguredMachine } from '../../supervisor/index.js';
import { checkSpec, checkSpecs } from '../../supervisor/services/check-spec.js';
import type { ServiceSpec } from '../../supervisor/services/service-spec.js';
import { checkMachineOptions, type MachineFolders, machineSpec } from '../machines/machine-spec.js';

/** A configuration as it is used. */
export interface Config {
  services: ServiceSpec[];
  /** Whose end ends the container. */
  main: string | null;
}

/** What a configuration does not say. */
export interface Defaults {
  /** The folder that its paths are relative to. */
  folder: string;
  /** The folder for the output of services that name no files. */
  logs: string;
  machines: MachineFolders;
  /** Our own command. */
  exitwatch: readonly string[];
}

/** What is wrong with a part of a configuration. */
export class ConfigFault extends Error {
  /** The path of the part that was checked, such as `services[1]`. */
  readonly part: string;

  constructor(part: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.part = part;
  }
}

const DEFAULT_LOG_BYTES = 10_000_000;

/** @throws ConfigFault */
export function checkConfig(value: unknown, defaults: Defaults): Config {
  const given = Array.isArray(value) ? { services: value } : value;
  if (!isObject(given)) throw new ConfigFault('', 'a configuration must be an object');
  const unknown = Object.keys(given).find((key) => key !== 'services' && key !== '$schema');
  if (unknown !== undefined) {
    throw new ConfigFault('', `unknown option ${JSON.stringify(unknown)}`);
  }
  const { services } = given;
  if (!Array.isArray(services)) throw new ConfigFault('', 'services must be an array');
  let main: string | null = null;
  const specs = services.map((each: unknown, at) => {
    const part = `services[${at}]`;
    return inPart(part, () => {
      const { spec, isMain } = specOf(each, defaults);
      if (isMain && main !== null) {
        throw invalidOption(`main is true of ${JSON.stringify(main)} already`);
      }
      if (isMain) main = spec.name;
      return spec;
    });
  });
  const all = inPart('services', () => checkSpecs(specs), specs);
  return { services: all, main };
}

function specOf(value: unknown, defaults: Defaults): { spec: ServiceSpec; isMain: boolean } {
  if (!isObject(value)) throw invalidOption('a service must be an object');
  const { main = false, ...rest } = value;
  const isMain = checkBoolean('main', main);
  const mode = isMain ? { restart: 'never' } : {};
  const given = 'kind' in rest ? machineOf({ ...mode, ...rest }, defaults) : rest;
  // First as it is: what is not valid is not to be resolved.
  const { name } = checkSpec({ ...given, ...absolute(given, defaults.folder) });
  const { logs = { file: join(defaults.logs, `${name}.log`), maxBytes: DEFAULT_LOG_BYTES } } =
    given;
  const spec = checkSpec({ ...mode, ...given, ...absolute({ ...given, logs }, defaults.folder) });
  return { spec, isMain };
}

function machineOf(
  value: Record<string, unknown>,
  { folder, machines, exitwatch }: Defaults,
): Record<string, unknown> {
  const own = ['kind', 'stop', 'restart'];
  const common = Object.fromEntries(Object.entries(value).filter(([name]) => !own.includes(name)));
  checkOneOf('kind', value['kind'], ['vm']);
  checkMachineOptions(value);
  checkSpec({ ...common, ...absolute(common, folder) });
  return machineSpec(value as ConfiguredMachine, machines, exitwatch);
}

/** Its paths, relative to the folder. What is no path is left as it is, for the check. */
function absolute(given: Record<string, unknown>, folder: string): Record<string, unknown> {
  const { cwd = folder, envFile, pidfile, logs } = given;
  const path = (value: unknown) =>
    typeof value === 'string' && value !== '' ? resolve(folder, value) : value;
  const named: Record<string, unknown> = { cwd: path(cwd) };
  if (envFile !== undefined) named['envFile'] = path(envFile);
  if (pidfile !== undefined) named['pidfile'] = path(pidfile);
  if (isObject(logs)) {
    const files = Object.entries(logs).map(([name, value]) => [
      name,
      ['stdout', 'stderr', 'file'].includes(name) ? path(value) : value,
    ]);
    named['logs'] = Object.fromEntries(files);
  } else if (logs !== undefined) named['logs'] = logs;
  return named;
}

/** @param specs what the names in a message are of */
function inPart<T>(part: string, check: () => T, specs: readonly ServiceSpec[] = []): T {
  try {
    return check();
  } catch (error) {
    // ERR_EXITWATCH_SYSTEM: its users cannot be looked up now.
    const isOurs =
      error instanceof ExitwatchError &&
      ['ERR_EXITWATCH_INVALID_OPTION', 'ERR_EXITWATCH_SYSTEM'].includes(error.code);
    if (!isOurs && !(error instanceof RangeError)) throw error;
    const message = isOurs ? error.detail : 'it has too many levels';
    const [, quoted] = /^service ("(?:[^"\\]|\\.)*"): /.exec(message) ?? [];
    const at = specs.findIndex(({ name }) => quoted !== undefined && name === JSON.parse(quoted));
    throw new ConfigFault(at === -1 ? part : `${part}[${at}]`, message, error);
  }
}
