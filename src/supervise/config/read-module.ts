// Evaluates a module, and sends what it exports, as JSON: a process for each time, because Node.js evaluates a
// module only once, and because it may do anything.
import { pathToFileURL } from 'node:url';

import { isObject } from '../../common/is-object.js';

/** What the process answers. */
export type ModuleAnswer = { json: string } | { fault: string };

async function read(path: string): Promise<ModuleAnswer> {
  const found = (await import(pathToFileURL(path).href)) as { default?: unknown };
  let value: unknown = found.default;
  // A CommonJS module that was compiled from an ES module.
  if (isObject(value) && value['__esModule'] === true) value = value['default'];
  if (typeof value === 'function') value = await (value as () => unknown)();
  if (value === undefined) return { fault: 'it has no default export' };
  const fault = faultIn(value, '', new Set());
  return fault === null ? { json: JSON.stringify(value) } : { fault };
}

/** What JSON would leave out or change without a word. */
function faultIn(value: unknown, path: string, around: ReadonlySet<object>): string | null {
  const where = path === '' ? 'what it exports' : path;
  if (typeof value === 'number') return Number.isFinite(value) ? null : `${where} is ${value}`;
  if (typeof value !== 'object' || value === null) {
    const isPlain = ['string', 'boolean', 'undefined'].includes(typeof value) || value === null;
    return isPlain ? null : `${where} must be plain JSON, not ${typeof value}`;
  }
  if (around.has(value)) return `${where} contains itself`;
  const inner = new Set([...around, value]);
  const members: [string, unknown][] = Array.isArray(value)
    ? value.map((each, at) => [`${path}[${at}]`, each])
    : Object.entries(value).map(([key, each]) => [path === '' ? key : `${path}.${key}`, each]);
  for (const [key, each] of members) {
    const fault = faultIn(each, key, inner);
    if (fault !== null) return fault;
  }
  return null;
}

read(process.argv[2] ?? '').then(
  (answer) => process.send?.(answer, () => process.exit(0)),
  (error: unknown) => {
    // With its stack, which has the line.
    process.stderr.write(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exitCode = 1;
  },
);
