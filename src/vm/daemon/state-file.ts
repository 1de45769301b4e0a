import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { distrustOf, trustedOwners } from '../../common/file-trust.js';
import { invalidOption } from '../../common/options.js';
import { ExitwatchError, reasonOf } from '../../common/errors.js';
import { readSmallFile } from '../../common/small-file.js';
import { isVmName } from '../directory/control-files.js';

import { hostId } from './host-id.js';

/** File names in a state directory: the name of a virtual machine, and one of these suffixes. */
export const STATE_SUFFIXES = { record: '.json', marker: '.shutdown' } as const;

export function statePath(
  stateDir: string,
  name: string,
  kind: keyof typeof STATE_SUFFIXES,
): string {
  return join(stateDir, `${name}${STATE_SUFFIXES[kind]}`);
}

/** The log of what is about to be done to machines. */
export function intentLogPath(stateDir: string): string {
  return join(stateDir, 'intents');
}

/**
 * A file of a state directory, read by `parse`; `null`: none, or about another host.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_STATE_DIR`.
 */
export async function readStateFile<T extends { host: string | null }>(
  path: string,
  most: number,
  parse: (value: unknown) => T,
): Promise<T | null> {
  try {
    const file = await readSmallFile(path, most);
    const folder = await stat(dirname(path));
    const distrust = distrustOf(file, trustedOwners(folder.uid));
    if (distrust !== null) throw new Error(`it ${distrust}`);
    if (file.isCut) throw new Error('the file is too long');
    return forThisHost(parse(JSON.parse(file.bytes.toString('utf8'), reviveDates)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw stateError(path, error);
  }
}

const DATES: readonly string[] = [
  ...['at', 'sentAt', 'exitedAt', 'startedAt', 'startedAfter', 'tracedSince', 'requestsSince'],
  ...['endedAt', 'foundAt', 'judgedUntil'],
];

function reviveDates(key: string, value: unknown): unknown {
  return DATES.includes(key) && typeof value === 'string' ? new Date(value) : value;
}

/** A state directory that was copied from another host says nothing about this one. */
function forThisHost<T extends { host: string | null }>(value: T): T | null {
  if (value.host == null || hostId() === null) return value;
  return value.host === hostId() ? value : null;
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkVmName(name: unknown): void {
  if (typeof name === 'string' && isVmName(name)) return;
  throw invalidOption(`${JSON.stringify(name)} is not a valid name of a virtual machine`);
}

/** @internal */
export function stateError(path: string, error: unknown): ExitwatchError {
  if (error instanceof ExitwatchError && error.code === 'ERR_EXITWATCH_STATE_DIR') return error;
  const detail = `cannot use ${JSON.stringify(path)}: ${reasonOf(error)}`;
  return new ExitwatchError('ERR_EXITWATCH_STATE_DIR', detail, { cause: error });
}
