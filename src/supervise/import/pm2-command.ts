import { closeSync, constants, existsSync, openSync, readSync } from 'node:fs';
import { extname, resolve } from 'node:path';

import { shellWords } from './words.js';

/** A process as pm2 describes it. */
export type App = Record<string, unknown>;

/** Names an option that is left out; without a reason it has the usual one. */
export type Leave = (option: string, reason?: string) => void;

/** By the ending of the script. */
const INTERPRETERS: Readonly<Record<string, string>> = {
  ...{ '.js': 'node', '.mjs': 'node', '.cjs': 'node', '.ts': 'node', '.py': 'python3' },
  ...{ '.sh': 'bash', '.rb': 'ruby', '.php': 'php', '.pl': 'perl' },
};

/** What pm2 executes for a script. */
export function commandOf(app: App, script: string, cwd: string, leave: Leave) {
  if (script.includes(' ')) return { command: 'bash', args: ['-c', script] };
  const path = resolve(cwd, script);
  const isThere = existsSync(path);
  // A name that is no file is looked up in PATH.
  const given = textOf(app['interpreter'] ?? app['exec_interpreter']);
  const known = INTERPRETERS[extname(script)];
  const isName = !isThere && !script.includes('/') && (given ?? known ?? 'none') === 'none';
  const file = isName ? script : path;
  if (given === undefined && known === undefined && !isThere && !isName) {
    leave('script', 'it is not there, and so whether Node.js runs it is not known: it is executed');
  }
  if (given === undefined && extname(script) === '.ts') {
    leave(
      'script',
      'Node.js runs it, without its types, since 22.18; otherwise give an interpreter',
    );
  }
  const isScript = isThere && !isBinary(path);
  const interpreter = given ?? known ?? (isScript ? 'node' : 'none');
  const own = wordsOf('args', app['args'], leave);
  const more = ['node_args', 'interpreter_args', 'interpreterArgs'].flatMap((option) =>
    wordsOf(option, app[option], leave),
  );
  if (app['source_map_support'] === true) more.push('--enable-source-maps');
  return interpreter === 'none'
    ? { command: file, args: own }
    : { command: interpreter, args: [...more, file, ...own] };
}

/** What has a NUL at its beginning is no text. */
function isBinary(path: string): boolean {
  const bytes = Buffer.alloc(512);
  let file;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return bytes.subarray(0, readSync(file, bytes)).includes(0);
  } catch {
    return false;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function wordsOf(option: string, value: unknown, leave: Leave): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map(String);
  try {
    return shellWords(textFrom(value));
  } catch (error) {
    leave(option, (error as Error).message);
    return [];
  }
}

/** A number or a text as a text; of anything else what JSON makes of it. */
export function textFrom(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A text that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
