import { ExitwatchError } from './errors.js';

/** The limit of setTimeout(). */
export const LONGEST_MS = 2 ** 31 - 1;

/** The error for an invalid option. */
export function invalidOption(message: string): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_INVALID_OPTION', message);
}

/**
 * The options by name. Callers may not use TypeScript, so this checks them.
 *
 * @param known all valid names; without this check, a misspelt option would silently have no effect
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`
 */
export function checkOptionNames<Name extends string>(
  options: unknown,
  known: readonly Name[],
): Partial<Record<Name, unknown>> {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const what = Array.isArray(options) ? 'an array' : String(options);
    throw invalidOption(`options must be an object, not ${what}`);
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name as Name));
  if (unknown !== undefined) throw invalidOption(`unknown option ${JSON.stringify(unknown)}`);
  return options;
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` unless it is one of these */
export function checkOneOf<Value extends string>(
  name: string,
  value: unknown,
  allowed: readonly Value[],
): Value {
  const found = allowed.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  const choice = allowed.map((candidate) => JSON.stringify(candidate)).join(' or ');
  throw invalidOption(`${name} must be ${choice}`);
}

/**
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` unless it is an integer within these bounds
 */
export function checkInteger(name: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
    return value as number;
  }
  throw invalidOption(`${name} must be an integer from ${least} to ${most}`);
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` unless it is `true` or `false` */
export function checkBoolean(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw invalidOption(`${name} is true or false`);
}

/** A duration that setTimeout() accepts. @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkMilliseconds(name: string, value: unknown): number {
  return checkInteger(name, value, 0, LONGEST_MS);
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` unless it is an AbortSignal or missing */
export function checkAbortSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal;
  throw invalidOption('signal must be an AbortSignal');
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` unless it is a path or missing */
export function checkPath(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  throw invalidOption(`${name} must be a path`);
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` unless it is a Date or missing */
export function checkDate(name: string, value: unknown): Date | undefined {
  if (value === undefined || value instanceof Date) return value;
  throw invalidOption(`${name} must be a Date`);
}
