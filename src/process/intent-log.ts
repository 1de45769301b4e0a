import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';

import { ExitwatchError, reasonOf } from '../common/errors.js';
import type { SignalName } from '../events/wait-status.js';
import { identify, type ProcessIdentity } from '../identity/process-identity.js';

import { AppendedFile, checkTrust } from './appended-file.js';
import { intentFilesOf } from './intent-files.js';

/**
 * What was about to be done to a process.
 *
 * @see [Who asked](../../docs/stop-safely.md#who-asked)
 */
export type Intent = {
  event: 'intent';
  /** The id of this intent. */
  id: string;
  at: Date;
  /** The process that it concerns. */
  identity: ProcessIdentity;
  what: SignalName | ControlName;
  /** The reason that the caller gave. */
  why: string | null;
  /** The process and the user that recorded it. */
  who: { identity: ProcessIdentity | null; uid: number | null };
  /** When it should have taken effect; a later exit is not attributed to it. */
  deadline: Date;
  /**
   * - `'pending'`: no outcome recorded yet, so it may have been carried out
   * - `'uncertain'`: it failed, perhaps after it had taken effect
   * - `'superseded'`: the process had exited before
   * - `'expired'`: still pending after its deadline
   */
  outcome: IntentOutcome | 'pending' | 'expired';
};

/**
 * A request that is not a signal.
 * - `'powerdown'`: presses a virtual machine's power button
 * - `'quit'`: asks its hypervisor to exit
 * - `'migrate'`: moves it to another host
 * - `'save'`: saves it to a file
 * - `'control'`: anything else
 *
 * @see [Who asked](../../docs/stop-safely.md#who-asked)
 */
export type ControlName = 'control' | 'powerdown' | 'quit' | 'migrate' | 'save';

/**
 * Records intents.
 *
 * @see [Who asked](../../docs/stop-safely.md#who-asked)
 */
export interface IntentRecorder {
  append(
    intent: Pick<Intent, 'identity' | 'what' | 'deadline'> & { why?: string | null },
  ): Promise<string>;
  settle(id: string, outcome: IntentOutcome): Promise<void>;
}

/**
 * The recorded outcome of an intent.
 *
 * @see [Who asked](../../docs/stop-safely.md#who-asked)
 */
export type IntentOutcome = 'delivered' | 'not-delivered' | 'uncertain' | 'superseded';

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** The longest line, with room for a reason. */
const MOST_LINE_BYTES = 16 * 1024;
const MOST_REASON = 1024;

/**
 * A durable record of what is about to be done to processes, written before it is done. Even after
 * a crash, it distinguishes "we asked for this" from "something else did". One JSON object per
 * line; any number of processes may append to the file.
 *
 * @see [Who asked](../../docs/stop-safely.md#who-asked)
 */
export class IntentLog implements IntentRecorder {
  readonly path: string;
  #file: AppendedFile | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Resolves with the intent's id once it is on disk.
   *
   * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_INTENT_LOG`; then do not go ahead.
   */
  async append(
    intent: Pick<Intent, 'identity' | 'what' | 'deadline'> & { why?: string | null },
  ): Promise<string> {
    const id = randomUUID();
    const { identity, what, deadline, why } = intent;
    await this.#write({
      event: 'intent',
      id,
      at: new Date(),
      identity,
      what,
      why: why?.slice(0, MOST_REASON) ?? null,
      who: { identity: identify(process.pid), uid: process.geteuid?.() ?? null },
      deadline,
    });
    return id;
  }

  /** Records the outcome. Rejects like {@link IntentLog.append}. */
  async settle(id: string, outcome: IntentOutcome): Promise<void> {
    await this.#write({ event: 'settled', id, at: new Date(), outcome });
  }

  /** Creates the file if it is missing: its age then tells what it covers. @internal */
  async create(): Promise<void> {
    try {
      (await this.#hold()).release();
    } catch (error) {
      throw logError(this.path, error);
    }
  }

  /** Closes the file, once what is being written is on disk; the log can be used again. */
  async close(): Promise<void> {
    await this.#leave(this.#file);
  }

  /** The file that has this name now: it may have been rotated. To be released. */
  async #hold(): Promise<AppendedFile> {
    const last = this.#file;
    if (last !== undefined) {
      // What cannot be looked at is opened again.
      const [ours, named] = await Promise.all([
        last
          .hold()
          .then((handle) => handle.stat())
          .catch(() => undefined),
        stat(this.path).catch(() => undefined),
      ]);
      if (ours !== undefined && ours.ino === named?.ino && ours.dev === named.dev) return last;
      last.release();
      await this.#leave(last);
    }
    const file = (this.#file ??= new AppendedFile(this.path));
    try {
      await file.hold();
      return file;
    } catch (error) {
      file.release();
      await this.#leave(file);
      throw error;
    }
  }

  /** Nobody begins to write to it any more. Resolves when it is closed, unless others leave it, too. */
  async #leave(file: AppendedFile | undefined): Promise<void> {
    if (file === undefined || this.#file !== file) return;
    this.#file = undefined;
    await file.close();
  }

  async #write(record: object): Promise<void> {
    let file: AppendedFile | undefined;
    try {
      file = await this.#hold();
      try {
        await file.append(record);
      } finally {
        file.release();
      }
    } catch (error) {
      await this.#leave(file).catch(() => undefined);
      throw logError(this.path, error);
    }
  }
}

/** A log is not rotated more often while it is read. */
const MOST_TRIES = 5;

/**
 * All intents of a log in order, and of what rotation has left beside it; torn records are skipped.
 * A missing log has none.
 *
 * Rejects with an {@link ExitwatchError} `ERR_EXITWATCH_INTENT_LOG`.
 *
 * @see [Who asked](../../docs/stop-safely.md#who-asked)
 */
export async function readIntents(path: string): Promise<Intent[]> {
  const intents = new Map<string, Intent>();
  try {
    let { files } = await intentFilesOf(path);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      for (const file of files) await takeAll(file.path, intents);
      const before = files.map(({ id }) => id).join();
      ({ files } = await intentFilesOf(path));
      if (files.map(({ id }) => id).join() === before) break; // not rotated meanwhile
    }
  } catch (error) {
    throw logError(path, error);
  }
  const now = Date.now();
  for (const intent of intents.values()) {
    if (intent.outcome === 'pending' && intent.deadline.getTime() < now) intent.outcome = 'expired';
  }
  return [...intents.values()];
}

async function takeAll(path: string, intents: Map<string, Intent>): Promise<void> {
  try {
    for await (const line of linesOf(path)) take(parse(line), intents);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    await checkTrust(file);
    let rest: Buffer = Buffer.alloc(0);
    let isTooLong = false;
    for await (const chunk of file.createReadStream({ autoClose: false })) {
      let data: Buffer = Buffer.concat([rest, chunk as Buffer]);
      for (let end = data.indexOf(0x0a); end >= 0; end = data.indexOf(0x0a)) {
        if (!isTooLong && end <= MOST_LINE_BYTES) yield data.toString('utf8', 0, end);
        isTooLong = false;
        data = data.subarray(end + 1);
      }
      isTooLong ||= data.length > MOST_LINE_BYTES;
      rest = isTooLong ? Buffer.alloc(0) : data;
    }
    // An unterminated line was torn, or is still being written.
  } finally {
    await file.close();
  }
}

type Parsed = Record<string, unknown> | null;

function parse(line: string): Parsed {
  if (line === '') return null;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' ? (value as Parsed) : null;
  } catch {
    return null; // torn
  }
}

const OUTCOMES: readonly unknown[] = ['delivered', 'not-delivered', 'uncertain', 'superseded'];

function take(record: Parsed, intents: Map<string, Intent>): void {
  if (typeof record?.['id'] !== 'string') return;
  const { id } = record;
  if (record['event'] === 'settled') {
    const intent = intents.get(id);
    const outcome = record['outcome'];
    if (intent !== undefined && OUTCOMES.includes(outcome))
      intent.outcome = outcome as IntentOutcome;
    return;
  }
  const { at, deadline, identity, what } = record;
  if (record['event'] !== 'intent' || typeof what !== 'string') return;
  if (typeof identity !== 'object' || identity === null) return;
  intents.set(id, {
    ...(record as Omit<Intent, 'at' | 'deadline' | 'outcome'>),
    at: new Date(String(at)),
    deadline: new Date(String(deadline)),
    outcome: 'pending',
  });
}

function logError(path: string, error: unknown): ExitwatchError {
  return new ExitwatchError(
    'ERR_EXITWATCH_INTENT_LOG',
    `cannot use the intent log ${JSON.stringify(path)}: ${reasonOf(error)}`,
    { cause: error },
  );
}
