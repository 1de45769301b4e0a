import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { ExitwatchError, reasonOf } from '../../common/errors.js';
import { KEEPER_IN_USE, KEEPER_NAME, usableFile } from '../../native/binary-places.js';

import { KeeperConnection, keeperError } from './connection.js';
import type { Message } from './message.js';

/** There is no keeper, or it is just ending. */
const NOBODY = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'];

const LONGEST_START_MS = 10_000;

/**
 * The program of the keeper.
 *
 * @throws ExitwatchError `ERR_EXITWATCH_NO_KEEPER`
 */
export function keeperBinary(): string {
  const { path, tried } = usableFile(KEEPER_NAME);
  if (path !== null) return path;
  const places = tried.map((each) => `${each.path} ${each.failure}`).join(', ');
  throw new ExitwatchError('ERR_EXITWATCH_NO_KEEPER', `there is no keeper: ${places}`, {
    remedy: process.platform === 'linux' ? 'run npx exitwatch build-native' : undefined,
  });
}

/**
 * Connects to the keeper of a folder, and starts one if there is none. A keeper belongs to no process:
 * it goes on when we end.
 */
export async function connectKeeper(
  folder: string,
): Promise<{ connection: KeeperConnection; hello: Message }> {
  const deadline = performance.now() + LONGEST_START_MS;
  for (;;) {
    const socket = await tryConnect(folder);
    if (socket !== null) {
      const connection = new KeeperConnection(socket);
      const hello = await connection.hello();
      if (hello !== null) return { connection, hello };
    }
    if (performance.now() > deadline) {
      throw keeperError(`the keeper of ${JSON.stringify(folder)} does not answer`);
    }
    // If another one is just starting or ending, it has the lock, but not yet or no longer a socket.
    if (!(await startKeeper(folder))) await sleep(5);
  }
}

/** `null`: nobody listens. */
function tryConnect(folder: string): Promise<Socket | null> {
  return new Promise((resolve, reject) => {
    // The address of a socket has at most 107 bytes; a path through a descriptor always fits.
    const directory = openFolder(folder);
    const socket = connect(join('/proc/self/fd', String(directory), 'socket'));
    const done = () => {
      closeSync(directory);
      socket.removeAllListeners();
    };
    socket.once('connect', () => {
      done();
      resolve(socket);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      done();
      if (NOBODY.includes(error.code ?? '')) resolve(null);
      else reject(keeperError(`cannot connect to the keeper: ${reasonOf(error)}`, error));
    });
  });
}

function openFolder(folder: string): number {
  try {
    return openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    throw keeperError(`cannot open ${JSON.stringify(folder)}: ${reasonOf(error)}`, error);
  }
}

/** `false`: another keeper has the folder. */
function startKeeper(folder: string): Promise<boolean> {
  const binary = keeperBinary();
  return new Promise((resolve, reject) => {
    const child = spawn(binary, ['keep', folder], {
      detached: true,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = `${said}${text}`.slice(0, 1000);
    });
    child.stdout.once('data', () => {
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      resolve(true);
    });
    child.once('error', (error) => {
      reject(keeperError(`${binary} cannot be started: ${reasonOf(error)}`, error));
    });
    child.once('close', (code, signal) => {
      if (code === KEEPER_IN_USE) resolve(false);
      else reject(keeperError(`the keeper did not start: ${said.trim() || `${signal ?? code}`}`));
    });
  });
}
