import { execFileSync } from 'node:child_process';

import { ExitwatchError } from '../../common/errors.js';
import { checkInteger, invalidOption } from '../../common/options.js';

const MOST_ID = 2 ** 32 - 2;
/** A name service may not answer, and nothing else is done meanwhile. */
const LONGEST_LOOKUP_MS = 5000;
/** How long an answer holds: a configuration asks for the same users again and again. */
const REMEMBERED_MS = 5000;

/** What was answered, or why nothing was; `null` of a user or group that there is none of. */
type Answer = string | null | ExitwatchError;

const answers = new Map<string, { atMs: number; answer: Answer }>();

/**
 * Who a process becomes, as fields of a request.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION`; `ERR_EXITWATCH_SYSTEM` if nobody can be asked
 */
export function userFields({
  user,
  group,
}: {
  user?: string | number;
  group?: string | number;
}): [string, string][] {
  const fields: [string, string][] = [];
  if (user !== undefined) {
    const name = String(user);
    const isNumber = typeof user === 'number';
    if (isNumber) checkInteger('user', user, 0, MOST_ID);
    const isName = name !== '' && !name.startsWith('-');
    const found = isName ? look('id', ['-u', name]) : null;
    if (found === null && !isNumber) throw invalidOption(`unknown user ${JSON.stringify(name)}`);
    fields.push(['uid', isNumber ? name : (found ?? '')]);
    // Only a number may be nobody's: then it has no groups.
    if (group === undefined) fields.push(['gid', primaryGroupOf(name, found !== null)]);
    if (found !== null) {
      for (const each of groupsOf(name)) fields.push(['group', each]);
    }
  }
  if (group !== undefined) fields.push(['gid', String(gidOf(group))]);
  return fields;
}

function primaryGroupOf(name: string, isKnown: boolean): string {
  const found = isKnown ? look('id', ['-g', name]) : null;
  if (found === null) throw invalidOption(`user ${name} has no group: give one as well`);
  return found;
}

/** Without them it would lack what they allow, and nobody would know why. */
function groupsOf(name: string): string[] {
  const found = look('id', ['-G', name]);
  if (found !== null) return found.split(' ');
  throw failure(`cannot look up the groups of user ${JSON.stringify(name)}`);
}

function gidOf(group: unknown): number {
  if (typeof group === 'number') return checkInteger('group', group, 0, MOST_ID);
  if (typeof group !== 'string' || group === '' || group.startsWith('-')) {
    throw invalidOption('group must be a name or a gid');
  }
  const entry = look('getent', ['group', group]);
  if (entry === null) throw invalidOption(`unknown group ${JSON.stringify(group)}`);
  return Number(entry.split(':')[2]);
}

/** What a command prints, from a moment ago if it was asked then; `null`: there is none of that name. */
function look(command: 'id' | 'getent', args: readonly string[]): string | null {
  const key = [command, ...args].join(' ');
  const known = answers.get(key);
  const isRecent = known !== undefined && performance.now() - known.atMs < REMEMBERED_MS;
  const answer = isRecent ? known.answer : ask(command, args);
  // What is missing is not remembered: somebody may just be adding it.
  if (!isRecent && answer !== null) answers.set(key, { atMs: performance.now(), answer });
  if (answer instanceof ExitwatchError) throw answer;
  return answer;
}

/** id(1) and getent(1) know the users of every name service, which a static program cannot ask. */
function ask(command: string, args: readonly string[]): Answer {
  try {
    return execFileSync(command, args, {
      ...{ encoding: 'utf8', stdio: 'pipe', env: process.env },
      ...{ timeout: LONGEST_LOOKUP_MS, killSignal: 'SIGKILL' },
    }).trim();
  } catch (error) {
    const { code, status } = error as NodeJS.ErrnoException & { status?: number | null };
    const what = `cannot look up users: ${command}(1)`;
    if (code === 'ENOENT') return failure(`there is no ${command}(1) to look up users with`, error);
    if (code === 'ETIMEDOUT') {
      return failure(`${what} did not answer within ${LONGEST_LOOKUP_MS} ms`, error);
    }
    return typeof status === 'number' ? null : failure(`${what} was ended`, error);
  }
}

function failure(detail: string, cause?: unknown): ExitwatchError {
  return new ExitwatchError('ERR_EXITWATCH_SYSTEM', detail, { cause });
}
