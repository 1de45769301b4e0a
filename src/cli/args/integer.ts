import { UsageError } from './usage-error.js';

/** Parses the value of an option that is a count or a pid. @throws UsageError */
export function parseInteger(option: string, text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new UsageError(`${option} must be a positive integer, not ${JSON.stringify(text)}`);
}
