import { ExitwatchError } from '../../common/errors.js';

import type { JsonPlaces } from './json-places.js';

/** A configuration that cannot be used. @param line from 1; `null`: that is not known */
export function configError(
  path: string,
  line: number | null,
  detail: string,
  cause?: unknown,
): ExitwatchError {
  const where = line === null ? path : `${path}:${line}`;
  return new ExitwatchError('ERR_EXITWATCH_CONFIG', `${where}: ${detail}`, { cause });
}

/**
 * The key that a message of a check is about. Such a message has the name of the option, without that of
 * what it belongs to: it is the first word that is one, before it says what must be.
 *
 * @param path of the object that was checked
 */
export function keyIn(message: string, path: string, keys: { has(key: string): boolean }): string {
  const said = message.replace(/^service "(?:[^"\\]|\\.)*": /, '');
  const [subject = ''] = said.split(' must ');
  for (const [word] of subject.matchAll(/[\w$@-][\w.$@[\]-]*/g)) {
    for (let name = word; name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('.')))) {
      const key = path === '' ? name : `${path}.${name}`;
      if (keys.has(key)) return key;
    }
  }
  return path;
}

/** The line of a key, or of what it is in. */
export function lineOf({ lines }: JsonPlaces, key: string): number | null {
  for (let at = key; at !== ''; at = at.replace(/(\.[^.[]*|\[\d+\]|^[^.[]*)$/, '')) {
    const line = lines.get(at);
    if (line !== undefined) return line;
  }
  return lines.get('') ?? null;
}
