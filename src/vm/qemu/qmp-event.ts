import { isObject } from '../../common/is-object.js';

/**
 * An event of QMP, the QEMU Machine Protocol.
 *
 * @see [Verdicts](../../../docs/virtual-machines.md#verdicts)
 */
export type QmpEvent = {
  /** `'SHUTDOWN'`, `'POWERDOWN'`, … */
  event: string;
  data: Record<string, unknown>;
  /** The hypervisor's time, by the host's CLOCK_REALTIME; `null` if it had no clock. */
  at: Date | null;
};

/** `null`: the message is no event. */
export function parseQmpEvent(message: unknown): QmpEvent | null {
  if (!isObject(message) || typeof message['event'] !== 'string') return null;
  const { data, timestamp } = message;
  return { event: message['event'], data: isObject(data) ? data : {}, at: parseTime(timestamp) };
}

/** More than any event that bears on an end has. */
const MOST_FIELDS = 16;
const MOST_TEXT = 200;
const MOST_DEPTH = 2;

/**
 * The event without what no hypervisor sends: long texts, many fields, nested data. It is safe to
 * keep many of these, and to print them.
 */
export function bounded({ event, data, at }: QmpEvent): QmpEvent {
  return { event, data: boundedObject(data, MOST_DEPTH), at };
}

function boundedObject(from: Record<string, unknown>, depth: number): Record<string, unknown> {
  const kept: [string, unknown][] = [];
  for (const [key, value] of Object.entries(from)) {
    if (kept.length >= MOST_FIELDS) break;
    if (isShort(key) && isShort(value)) kept.push([key, value]);
    else if (isShort(key) && isObject(value) && depth > 1) {
      kept.push([key, boundedObject(value, depth - 1)]);
    }
  }
  return Object.fromEntries(kept);
}

/** A long text is left out: a part of it would keep all of it in memory. */
function isShort(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= MOST_TEXT;
  return value === null || typeof value === 'number' || typeof value === 'boolean';
}

function parseTime(timestamp: unknown): Date | null {
  if (!isObject(timestamp)) return null;
  const { seconds, microseconds } = timestamp;
  if (typeof seconds !== 'number' || typeof microseconds !== 'number' || seconds < 0) return null;
  const date = new Date(seconds * 1000 + microseconds / 1000);
  return Number.isNaN(date.getTime()) ? null : date;
}
