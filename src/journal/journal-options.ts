import { checkInteger, checkOptionNames, checkPath, invalidOption } from '../common/options.js';
import { toJsonLine } from '../common/safe-text.js';
import type { ExitEvent } from '../events/exit-event.js';

import type { Retention } from './retention.js';
import { keepsIn, MOST_HEADER_BYTES } from './rows.js';

/**
 * Options of a {@link JournalWriter}.
 *
 * @see [The journal](../../docs/journal.md#in-a-program)
 */
export interface JournalOptions {
  /** The directory of the journal; it is created if it is missing. */
  dir: string;
  /** The id of a group that may read the journal; default: nobody but the owner. */
  gid?: number;
  /** When to begin a new segment: after so many bytes, or so many ms. Default 64 MiB, or a day. */
  segmentBytes?: number;
  segmentMs?: number;
  /** How much to keep, in whole segments. Default 1 GiB, and 90 days. */
  keepBytes?: number;
  keepMs?: number;
  /** If not all ends are appended: which ones, in words for those who look for others. Default: all. */
  keeps?: readonly string[];
  /** Called with the ids of the ends that are on disk, or that the journal has as a gap. */
  onStored?: (exits: readonly Pick<ExitEvent, 'id'>[]) => void;
  /** Called when rows cannot be written, and with `null` when they can again. */
  onTrouble?: (error: Error | null) => void;
}

export interface CheckedJournalOptions {
  dir: string;
  gid: number | undefined;
  segmentBytes: number;
  segmentMs: number;
  keep: Retention;
  keeps: readonly string[] | null;
  onStored: (exits: readonly Pick<ExitEvent, 'id'>[]) => void;
  onTrouble: (error: Error | null) => void;
}

const NAMES = [
  ...(['dir', 'gid', 'segmentBytes', 'segmentMs', 'keepBytes', 'keepMs'] as const),
  ...(['keeps', 'onStored', 'onTrouble'] as const),
];

const DAY_MS = 86_400_000;
const MEBIBYTE = 1024 * 1024;

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkJournalOptions(options: unknown): CheckedJournalOptions {
  const checked = checkOptionNames(options, NAMES);
  const { gid, segmentBytes = 64 * MEBIBYTE, segmentMs = DAY_MS } = checked;
  const { keepBytes = 1024 * MEBIBYTE, keepMs = 90 * DAY_MS } = checked;
  return {
    dir: checkDir(checked.dir),
    gid: gid === undefined ? undefined : checkInteger('gid', gid, 0, 0xfffffffe),
    segmentBytes: checkInteger('segmentBytes', segmentBytes, 4096, 1024 * MEBIBYTE),
    segmentMs: checkInteger('segmentMs', segmentMs, 1000, 366 * DAY_MS),
    keep: {
      bytes: checkInteger('keepBytes', keepBytes, 4096, Number.MAX_SAFE_INTEGER),
      ms: checkInteger('keepMs', keepMs, 1000, Number.MAX_SAFE_INTEGER),
    },
    keeps: checkKeeps(checked.keeps),
    onStored: checkCallback<readonly Pick<ExitEvent, 'id'>[]>('onStored', checked.onStored),
    onTrouble: checkCallback<Error | null>('onTrouble', checked.onTrouble),
  };
}

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkDir(dir: unknown): string {
  const path = checkPath('dir', dir);
  if (path === undefined || path.includes('\0'))
    throw invalidOption('dir is the path of a journal');
  return path;
}

function checkKeeps(value: unknown): readonly string[] | null {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return null;
  const keeps = keepsIn(value);
  if (keeps === null) throw invalidOption('keeps is an array of strings');
  // There is more in the header.
  if (Buffer.byteLength(toJsonLine(keeps)) <= MOST_HEADER_BYTES - 1024) return [...keeps];
  throw invalidOption(`keeps has too many, or too long strings`);
}

type Callback<Value> = (value: Value) => void;

function checkCallback<Value>(name: string, value: unknown): Callback<Value> {
  if (value === undefined) return () => undefined;
  if (typeof value === 'function') return value as Callback<Value>;
  throw invalidOption(`${name} is a function`);
}
