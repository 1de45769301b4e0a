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

function parseTime(timestamp: unknown): Date | null {
  if (!isObject(timestamp)) return null;
  const { seconds, microseconds } = timestamp;
  if (typeof seconds !== 'number' || typeof microseconds !== 'number' || seconds < 0) return null;
  const date = new Date(seconds * 1000 + microseconds / 1000);
  return Number.isNaN(date.getTime()) ? null : date;
}
