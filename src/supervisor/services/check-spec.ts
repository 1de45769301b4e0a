import { ExitwatchError } from '../../common/errors.js';
import { isObject } from '../../common/is-object.js';
import {
  LONGEST_MS,
  checkInteger,
  checkMilliseconds,
  checkOneOf,
  checkOptionNames,
  invalidOption,
} from '../../common/options.js';
import { encodeMessage } from '../keeper/message.js';
import { ownEnvironment } from '../keeper/own-environment.js';
import { PROCESS_OPTIONS, type RunOptions, toRequest } from '../keeper/run-options.js';
import { checkSignalName } from '../keeper/stop-run.js';

import { Backoff } from './backoff.js';
import type { ServiceSpec } from './service-spec.js';
import { checkOrder } from './start-order.js';

const NAMES = [
  ...PROCESS_OPTIONS,
  ...([
    'name',
    'extraEnv',
    'restart',
    'successExitCodes',
    'askedBy',
    'onUnknown',
    'backoff',
  ] as const),
  ...(['after', 'stop', 'ready', 'watchdog'] as const),
] satisfies (keyof ServiceSpec)[];

const NAME = /^[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,74}$/;
const MODES = ['always', 'on-failure', 'unless-asked', 'never'] as const;

/**
 * A copy of the service that nobody can change, without what is `undefined`.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`, which names the service
 */
export function checkSpec(value: unknown): ServiceSpec {
  const given = plain(value);
  const { name } = given;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalidOption(
      'name must have 1 to 75 of the characters A-Z, a-z, 0-9 and ._@-, the first one no dot',
    );
  }
  try {
    checkParts(given);
    encodeMessage(toRequest(runOptions(given as ServiceSpec, `${name}.check`), null));
  } catch (error) {
    if (!(error instanceof ExitwatchError)) throw error;
    if (error.code !== 'ERR_EXITWATCH_INVALID_OPTION') throw error;
    throw invalidOption(`service ${JSON.stringify(name)}: ${error.message}`);
  }
  return Object.freeze(given) as ServiceSpec;
}

/** All of a desired set. @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkSpecs(values: unknown): ServiceSpec[] {
  if (!Array.isArray(values)) throw invalidOption('services must be an array');
  const specs = values.map(checkSpec);
  const names = new Set<string>();
  for (const { name } of specs) {
    if (names.has(name)) throw invalidOption(`there are two services ${JSON.stringify(name)}`);
    names.add(name);
  }
  checkOrder(specs);
  return specs;
}

/** What a keeper is asked to start. */
export function runOptions(spec: ServiceSpec, id: string): RunOptions {
  const given = PROCESS_OPTIONS.filter((name) => spec[name] !== undefined);
  const { command, cwd = '/', env = ownEnvironment(), extraEnv, ready, watchdog } = spec;
  const usec = watchdog === undefined ? {} : { WATCHDOG_USEC: String(watchdog.withinMs * 1000) };
  return {
    ...Object.fromEntries(given.map((name) => [name, spec[name]])),
    ...{ id, command, cwd, env: { ...env, ...extraEnv, ...usec } },
    notify: watchdog !== undefined || (ready !== undefined && 'notify' in ready),
  };
}

function plain(value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw invalidOption('a service must be an object');
  checkOptionNames(value, NAMES);
  return without(value, 'the service');
}

/** A deep copy; what JSON cannot express is refused, because a service is stored. */
function without(value: object, where: string): Record<string, unknown> {
  const copy = copyOf(value, where);
  return copy as Record<string, unknown>;
}

function copyOf(value: unknown, where: string): unknown {
  // Not map(), which leaves out what is missing.
  if (Array.isArray(value)) {
    return Array.from(value, (each: unknown, at) => copyOf(each, `${where}[${at}]`));
  }
  if (isObject(value)) {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    return Object.fromEntries(
      entries.map(([name, each]) => [name, copyOf(each, `${where}.${name}`)]),
    );
  }
  const isPlain =
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value));
  if (isPlain) return value;
  throw invalidOption(`${where} must be plain JSON, not ${typeof value}`);
}

function checkParts(given: Record<string, unknown>): void {
  const { restart, successExitCodes, askedBy, onUnknown, backoff, stop } = given;
  for (const option of ['env', 'extraEnv']) {
    if (given[option] === undefined) continue;
    for (const [name, value] of Object.entries(object(option, given[option]))) {
      if (typeof value !== 'string') throw invalidOption(`${option}.${name} must be a string`);
      if (name === '' || /[=\0]/.test(name)) {
        throw invalidOption(`${option} cannot have a variable named ${JSON.stringify(name)}`);
      }
    }
  }
  if (restart !== undefined) checkOneOf('restart', restart, MODES);
  if (onUnknown !== undefined) checkOneOf('onUnknown', onUnknown, ['restart', 'stay']);
  for (const code of list('successExitCodes', successExitCodes)) {
    checkInteger('successExitCodes', code, 0, 255);
  }
  for (const each of list('askedBy', askedBy)) checkAskedBy(each);
  for (const each of list('after', given['after'])) text('each of after', each);
  if (backoff !== undefined) new Backoff(object('backoff', backoff));
  if (stop !== undefined) checkStop(object('stop', stop));
  if (given['ready'] !== undefined) checkReady(object('ready', given['ready']));
  if (given['watchdog'] !== undefined) {
    const { withinMs } = only('watchdog', given['watchdog'], ['withinMs']);
    checkInteger('watchdog.withinMs', withinMs, 1, LONGEST_MS);
  }
}

function checkAskedBy(value: unknown): void {
  const { uid, unit, ancestor } = only('askedBy', value, ['uid', 'unit', 'ancestor']);
  if (Object.keys(value as object).length !== 1) {
    throw invalidOption('each of askedBy must have one of uid, unit and ancestor');
  }
  if (uid !== undefined) checkInteger('askedBy.uid', uid, 0, 2 ** 32 - 2);
  if (unit !== undefined) text('askedBy.unit', unit);
  if (ancestor !== undefined) text('askedBy.ancestor', ancestor);
}

function checkStop(stop: object): void {
  const names = ['signal', 'ask', 'graceMs', 'control'] as const;
  const { signal, ask, graceMs, control } = only('stop', stop, names);
  if (signal !== undefined) checkSignalName(signal);
  if (ask !== undefined) checkOneOf('stop.ask', ask, ['tree', 'main']);
  if (graceMs !== undefined) checkMilliseconds('stop.graceMs', graceMs);
  if (control !== undefined) checkCommand('stop.control', control);
}

function checkReady(ready: object): void {
  const kinds = ['notify', 'http', 'tcp', 'exec', 'aliveMs'] as const;
  const given = only('ready', ready, [...kinds, 'everyMs', 'withinMs']);
  const [kind, ...others] = kinds.filter((each) => given[each] !== undefined);
  if (kind === undefined || others.length > 0) {
    throw invalidOption(`ready must have one of ${kinds.join(', ')}`);
  }
  if (kind === 'notify' && given.notify !== true) throw invalidOption('ready.notify must be true');
  if (kind === 'aliveMs') checkMilliseconds('ready.aliveMs', given.aliveMs);
  if (kind === 'exec') checkCommand('ready.exec', given.exec);
  if (kind === 'http') checkUrl(given.http);
  if (kind === 'tcp') {
    const { host, port } = only('ready.tcp', given.tcp, ['host', 'port']);
    if (host !== undefined) text('ready.tcp.host', host);
    checkInteger('ready.tcp.port', port, 1, 65_535);
  }
  const { everyMs, withinMs } = given;
  if (everyMs !== undefined) checkInteger('ready.everyMs', everyMs, 1, LONGEST_MS);
  if (withinMs !== undefined) checkInteger('ready.withinMs', withinMs, 1, LONGEST_MS);
}

function checkUrl(url: unknown): void {
  const isUrl = typeof url === 'string' && URL.canParse(url);
  if (isUrl && ['http:', 'https:'].includes(new URL(url).protocol)) return;
  throw invalidOption('ready.http must be a URL that begins with http: or https:');
}

function checkCommand(name: string, value: unknown): void {
  const { command, args, timeoutMs } = only(name, value, ['command', 'args', 'timeoutMs']);
  text(`${name}.command`, command);
  for (const each of list(`${name}.args`, args)) {
    if (typeof each !== 'string' || each.includes('\0')) {
      throw invalidOption(`${name}.args must be an array of strings without NUL`);
    }
  }
  if (timeoutMs !== undefined) checkInteger(`${name}.timeoutMs`, timeoutMs, 1, LONGEST_MS);
}

function object(name: string, value: unknown): Record<string, unknown> {
  if (isObject(value)) return value;
  throw invalidOption(`${name} must be an object`);
}

function only<Name extends string>(name: string, value: unknown, known: readonly Name[]) {
  const given = object(name, value);
  const unknown = Object.keys(given).find((each) => !known.includes(each as Name));
  if (unknown === undefined) return given as Partial<Record<Name, unknown>>;
  throw invalidOption(`unknown option ${JSON.stringify(`${name}.${unknown}`)}`);
}

function list(name: string, value: unknown): unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw invalidOption(`${name} must be an array`);
}

function text(name: string, value: unknown): void {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return;
  throw invalidOption(`${name} must be a text that is not empty`);
}
