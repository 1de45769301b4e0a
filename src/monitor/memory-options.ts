import { resolve } from 'node:path';

import { checkInteger, checkOptionNames, invalidOption } from '../common/options.js';
import type { MemoryOptions } from '../memory/keeping.js';
import { DEFAULT_PINS, DEFAULT_SIZE } from '../memory/recorder-pins.js';

/**
 * The recorder of a `stateDir`.
 *
 * @see [Options](../../docs/options.md)
 */
export interface RecorderOptions {
  /** The folder in a BPF file system for all recorders. Default `/sys/fs/bpf/exitwatch`. */
  pinDir?: string;
  /** How many processes can be watched at once. Default 16,384; each takes about 800 bytes. */
  slots?: number;
  /**
   * With scope `'all'`: room for exits that no monitor has committed, 184 bytes each. Default 4 MiB,
   * for 22,000 exits. Rounded up to a power of two.
   */
  ringBytes?: number;
  /** Room for signals that killed no process, 296 bytes each. Default 1 MiB. */
  signalBytes?: number;
}

const RECORDER_OPTIONS = ['pinDir', 'slots', 'ringBytes', 'signalBytes'] as const;

const MOST_SLOTS = 1_000_000;
const MOST_BYTES = 1024 * 1024 * 1024;

/** @throws ExitwatchError `ERR_EXITWATCH_INVALID_OPTION` */
export function checkMemory(
  stateDir: unknown,
  scope: 'watched' | 'all',
  recorder: unknown,
  maxDelayMs: number,
): MemoryOptions | null {
  const {
    pinDir = DEFAULT_PINS,
    slots = DEFAULT_SIZE.slots,
    ringBytes = DEFAULT_SIZE.ringBytes,
    signalBytes = DEFAULT_SIZE.signalBytes,
  } = checkOptionNames(recorder, RECORDER_OPTIONS);
  const size = {
    slots: checkInteger('recorder.slots', slots, 1, MOST_SLOTS),
    ringBytes: checkInteger('recorder.ringBytes', ringBytes, 1, MOST_BYTES),
    signalBytes: checkInteger('recorder.signalBytes', signalBytes, 1, MOST_BYTES),
  };
  const root = checkPath('recorder.pinDir', pinDir);
  if (stateDir === undefined) return null;
  const folder = resolve(checkPath('stateDir', stateDir));
  return { stateDir: folder, scope, pinDir: resolve(root), size, maxDelayMs };
}

function checkPath(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value;
  throw invalidOption(`${name} is the path of a directory`);
}
