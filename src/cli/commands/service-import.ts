import { readFile } from 'node:fs/promises';
import { dirname, extname, resolve } from 'node:path';

import { evaluateModule } from '../../supervise/config/load-config.js';
import { fromPm2 } from '../../supervise/import/from-pm2.js';
import { fromSupervisord } from '../../supervise/import/from-supervisord.js';
import type { Imported, LeftOut } from '../../supervise/import/imported.js';
import { parseArguments } from '../args/parse-arguments.js';
import { UsageError } from '../args/usage-error.js';
import { escapeText } from '../output/escape.js';

export const SERVICE_IMPORT_HELP = `Makes a configuration of "exitwatch supervise" from one of pm2 or supervisord.

Usage: exitwatch service import FILE [OPTION]…

  FILE             ecosystem.config.js of pm2, which is evaluated, or its JSON; or
                   a .conf or .ini of supervisord
  --help           prints this text

Prints the configuration, and on stderr what is left out, and why.

Exits with 0; with 1 if something was left out; 2 if FILE cannot be read.
`;

const EXIT_LEFT_OUT = 1;

/** `exitwatch service import`; resolves with the exit code. */
export async function serviceImportCommand(args: readonly string[]): Promise<number> {
  const { positionals } = parseArguments({ args: [...args], allowPositionals: true, options: {} });
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) {
    throw new UsageError('service import requires one FILE');
  }
  const { services, leftOut } = await importFrom(resolve(file));
  process.stdout.write(`${JSON.stringify({ services }, null, 2)}\n`);
  for (const each of leftOut) process.stderr.write(`${escapeText(describe(each))}\n`);
  return leftOut.length === 0 ? 0 : EXIT_LEFT_OUT;
}

async function importFrom(path: string): Promise<Imported> {
  try {
    if (['.conf', '.ini'].includes(extname(path))) {
      return fromSupervisord(await readFile(path, 'utf8'), path);
    }
    if (extname(path) === '.json')
      return fromPm2(JSON.parse(await readFile(path, 'utf8')), dirname(path));
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`);
  }
  return fromPm2(await evaluateModule(path), dirname(path));
}

function describe({ service, option, reason }: LeftOut): string {
  return `left out: ${service === null ? '' : `${service}: `}${option}: ${reason}`;
}
